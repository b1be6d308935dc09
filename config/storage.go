package config

import (
	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// Names of the fields of the object store.
const (
	fieldRegion             = "region"
	fieldEndpoint           = "endpoint"
	fieldForcePathStyleURLs = "force_path_style_urls"
	fieldCredentials        = "credentials"
	fieldID                 = "id"
	fieldSecret             = "secret"
	fieldProfile            = "profile"
	fieldRole               = "role"
	fieldRoleExternalID     = "role_external_id"
)

// storageURLPattern is what a store may be called; the engine knows more.
const storageURLPattern = `^(file:///.*|mem://[^/]*|(s3|gs|azblob)://[^/?#@]+(/[^?#]*)?|[^:]*|[A-Za-z]:[^:]*)$`

func storageField() *service.ConfigField {
	return service.NewObjectField(fieldStorage,
		service.NewStringField(fieldURL).Default("").
			LintRule(lintPattern(storageURLPattern, "want s3://bucket/prefix, gs://bucket/prefix, azblob://container/prefix, file:///absolute/path, a path, or mem://")).
			Description("Where objects are kept: `s3://bucket/prefix`, `gs://bucket/prefix` or `azblob://container/prefix` for a bucket or a part of one, `file:///path` or a path for a folder, `mem://` for memory, which with everything else is gone when the process ends. Empty means `objects` in `data_dir`. A service of the S3 protocol must support conditional writes (`If-None-Match`).").
			Example("s3://acme-lake/prod").Example("file:///mnt/lake/prod"),
		service.NewStringField(fieldRegion).Default("").
			Description("Region of an S3 bucket. Empty means what the surroundings say (`AWS_REGION`, shared configuration), or `us-east-1` with an `endpoint`."),
		service.NewStringField(fieldEndpoint).Default("").
			LintRule(lintPattern(`^(https?://[^/?#@]+(/[^?#]*)?)?$`, "want https://host, or http:// on this machine")).
			Description("Address of a service that is not the provider's public one: of the S3 protocol, an emulator, an Azure account under another domain. Without TLS only this machine is taken, because credentials would show.").
			Example("https://minio.acme.internal"),
		service.NewBoolField(fieldForcePathStyleURLs).Default(false).
			Description("Whether S3 requests name the bucket in their path instead of the host name. Most services other than AWS need it."),
		storageCredentialsField(),
	).Advanced().Description("The object store. Tables are kept in it too, unless `catalog.warehouse` says otherwise.")
}

func storageCredentialsField() *service.ConfigField {
	return service.NewObjectField(fieldCredentials,
		service.NewStringField(fieldID).Default("").Description("S3: id of an access key. Azure: name of the storage account, otherwise `AZURE_STORAGE_ACCOUNT`."),
		service.NewStringField(fieldSecret).Default("").Secret().
			Description("S3: secret of the access key. Google: the JSON of a service account's key. Azure: key of the storage account."),
		service.NewStringField(fieldToken).Default("").Secret().
			Description("S3: session token of temporary credentials. Google: an OAuth 2 access token. Azure: a shared access signature."),
		service.NewStringField(fieldProfile).Default("").Description("S3: a profile of the shared configuration files."),
		service.NewStringField(fieldRole).Default("").Description("S3: ARN of a role to assume."),
		service.NewStringField(fieldRoleExternalID).Default("").Description("S3: the external id that the role's trust policy asks for."),
	).Description("Who we are to the provider. Without any field the surroundings decide: environment variables, files in the home directory, the machine's identity.")
}

func parseStorage(v *values) engine.StorageOptions {
	return engine.StorageOptions{
		URL:                v.text(fieldStorage, fieldURL),
		Region:             v.text(fieldStorage, fieldRegion),
		Endpoint:           v.text(fieldStorage, fieldEndpoint),
		ForcePathStyleURLs: v.flag(fieldStorage, fieldForcePathStyleURLs),
		Credentials: engine.StorageCredentials{
			ID:             v.text(fieldStorage, fieldCredentials, fieldID),
			Secret:         Secret(v.text(fieldStorage, fieldCredentials, fieldSecret)),
			Token:          Secret(v.text(fieldStorage, fieldCredentials, fieldToken)),
			Profile:        v.text(fieldStorage, fieldCredentials, fieldProfile),
			Role:           v.text(fieldStorage, fieldCredentials, fieldRole),
			RoleExternalID: v.text(fieldStorage, fieldCredentials, fieldRoleExternalID),
		},
	}
}
