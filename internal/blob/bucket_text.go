package blob

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// maxErrorText bounds what is shown of a provider's error, in bytes.
const maxErrorText = 600

// providerError is an error of a provider's client with a text that may be shown:
// the client's own may hold a signed URL or a page of XML.
type providerError struct {
	text  string
	cause error
}

func (e *providerError) Error() string { return e.text }
func (e *providerError) Unwrap() error { return e.cause }

// shown returns err with a text that holds no secret and says what to do where
// that is known.
func (s *bucketStore) shown(err error) error {
	text := err.Error()
	if azure, ok := errors.AsType[*azcore.ResponseError](err); ok { // prints request and response as a page
		text = fmt.Sprintf("the store answered %d %s", azure.StatusCode, azure.ErrorCode)
	}
	text = withoutSecrets(text, s.secrets)
	if remedy := cloudRemedy(err); remedy != "" {
		text += ": " + remedy
	}
	return &providerError{text: text, cause: err}
}

// urlSecrets finds the parts of a URL that may identify its user.
var urlSecrets = regexp.MustCompile(`([a-z]+://)(?:[^\s/"@]*@)?([^\s"?]*)(?:\?[^\s"]*)?`)

func withoutSecrets(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = urlSecrets.ReplaceAllString(text, "$1$2")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// cloudRemedies tell what to do about answers that an operator can mend, by the
// provider's code.
var cloudRemedies = map[string]string{ //nolint:gosec // texts for people, no credentials
	"NoSuchBucket":                 "create the bucket or correct storage.url",
	"ContainerNotFound":            "create the container or correct storage.url",
	"InvalidAccessKeyId":           "correct storage.credentials.id",
	"SignatureDoesNotMatch":        "correct storage.credentials.secret, and storage.region where it is set",
	"AuthenticationFailed":         "correct storage.credentials, and check the machine's clock",
	"ExpiredToken":                 "renew storage.credentials.token",
	"RequestTimeTooSkewed":         "set the machine's clock",
	"PermanentRedirect":            "set storage.region to that of the bucket",
	"AuthorizationHeaderMalformed": "set storage.region to that of the bucket",
	"NotImplemented":               "the service must support conditional writes (If-None-Match): upgrade it or use another",
}

func cloudRemedy(err error) string {
	status, code := answer(err)
	_, unnamed := errors.AsType[*net.DNSError](err)
	switch remedy := cloudRemedies[code]; {
	case remedy != "":
		return remedy
	case noBucket(err, code):
		return cloudRemedies["NoSuchBucket"]
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "give the user of storage.credentials leave to read, write, list and delete below storage.url"
	case status == http.StatusMovedPermanently:
		return cloudRemedies["PermanentRedirect"]
	case unnamed:
		return "correct storage.endpoint or storage.region, or restore the name service"
	default:
		return ""
	}
}
