package blob

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
)

// Cloud says how to reach a bucket and as whom. The zero value reaches a
// provider's public service with the credentials of the surroundings: environment
// variables, files in the home directory, the machine's identity.
type Cloud struct {
	// Region of an S3 bucket. Empty means the surroundings', or us-east-1 with an
	// endpoint of its own.
	Region string
	// Endpoint is the address of a service that is not the provider's public one,
	// as http:// or https:// URL. Without TLS only loopback addresses are taken:
	// what proves who we are would travel in the open.
	Endpoint string
	// ForcePathStyleURLs puts the bucket of S3 into the path of each request
	// instead of the host name, which most services other than AWS need.
	ForcePathStyleURLs bool
	// Credentials are who we are.
	Credentials Credentials
}

// Credentials say who we are to a provider. Which fields count depends on the
// scheme of the store:
//
//   - s3: ID and Secret are an access key, Token its session token; or Profile
//     names one of the shared configuration files. Role is the ARN of a role to
//     assume with them, RoleExternalID what its trust policy asks for.
//   - gs: Secret is the JSON of a service account's key, or Token an OAuth 2
//     access token.
//   - azblob: ID is the name of the storage account, Secret its key, or Token a
//     shared access signature.
type Credentials struct {
	ID             string
	Secret         base.Secret
	Token          base.Secret
	Profile        string
	Role           string
	RoleExternalID string
}

// Validate checks the URL of a store and the options against it. What it refuses is
// base.ErrInvalid and names the field. No message holds a secret.
func (c Cloud) Validate(rawURL string) error {
	if strings.Contains(rawURL, "://") {
		if _, err := parseURL(rawURL); err != nil {
			return err
		}
	}
	scheme, _, _ := strings.Cut(rawURL, "://")
	check, known := cloudChecks[scheme]
	if !known {
		if c != (Cloud{}) {
			return fmt.Errorf("storage: region, endpoint, force_path_style_urls and credentials are for s3, gs and azblob: %w", base.ErrInvalid)
		}
		return nil
	}
	if err := checkEndpoint(c.Endpoint); err != nil {
		return err
	}
	return check(c)
}

// cloudChecks know which options a scheme takes.
var cloudChecks = map[string]func(Cloud) error{
	schemeS3:    checkS3,
	schemeGS:    checkGS,
	schemeAzure: checkAzure,
}

// IsCloud reports whether a store's URL names a bucket of a provider.
func IsCloud(rawURL string) bool {
	scheme, _, _ := strings.Cut(rawURL, "://")
	return cloudChecks[scheme] != nil
}

func checkS3(c Cloud) error {
	k := c.Credentials
	switch {
	case (k.ID == "") != (k.Secret == ""):
		return refused("credentials", "an access key is both id and secret: set both or none")
	case k.Token != "" && k.ID == "":
		return refused("credentials.token", "a session token belongs to an id and a secret: set them too")
	case k.Profile != "" && k.ID != "":
		return refused("credentials.profile", "give either id and secret or a profile")
	case k.RoleExternalID != "" && k.Role == "":
		return refused("credentials.role_external_id", "it belongs to a role: set credentials.role too")
	default:
		return nil
	}
}

func checkGS(c Cloud) error {
	k := c.Credentials
	switch {
	case c.Region != "" || c.ForcePathStyleURLs:
		return refused("region and force_path_style_urls", "they are for s3")
	case k.ID != "" || k.Profile != "" || k.Role != "" || k.RoleExternalID != "":
		return refused("credentials", "gs takes secret, the JSON of a service account's key, or token; or none, and the surroundings' are used")
	case k.Secret != "" && k.Token != "":
		return refused("credentials", "give either secret or token")
	default:
		return nil
	}
}

func checkAzure(c Cloud) error {
	k := c.Credentials
	switch {
	case c.Region != "" || c.ForcePathStyleURLs:
		return refused("region and force_path_style_urls", "they are for s3")
	case k.Profile != "" || k.Role != "" || k.RoleExternalID != "":
		return refused("credentials", "azblob takes id, the storage account, with secret, its key, or token, a shared access signature")
	case k.Secret != "" && k.Token != "":
		return refused("credentials", "give either secret or token")
	case k.ID == "" && (k.Secret != "" || k.Token != ""):
		return refused("credentials.id", "name the storage account that secret or token is for")
	default:
		return nil
	}
}

func refused(field, why string) error {
	return fmt.Errorf("storage.%s: %w: %s", field, base.ErrInvalid, why)
}

// checkEndpoint refuses an address over which credentials would travel in the open.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return refused("endpoint", "want https://host, or http:// on this machine") // not the parser's error, which quotes it
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return refused("endpoint", "credentials, query and fragment have no place in it: use storage.credentials")
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return refused("endpoint", "http:// to another machine would show credentials and data to the network: use https://")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
