package config

import (
	"crypto/tls"
	"fmt"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/engine"
)

// Names of the fields of external NATS servers.
const (
	fieldBucket              = "bucket"
	fieldReplicas            = "replicas"
	fieldAuth                = "auth"
	fieldNKeyFile            = "nkey_file"
	fieldUserCredentialsFile = "user_credentials_file"
	fieldUser                = "user"
	fieldToken               = "token"
	fieldAllowPlaintext      = "allow_plaintext"
)

func natsField() *service.ConfigField {
	return service.NewObjectField(fieldNATS,
		service.NewStringListField(fieldURLs).Default([]any{}).
			Description("NATS servers with JetStream that coordinate the cluster. None means a server inside this process, whose store is in `data_dir`. Servers must sync every write (`sync_interval: always`).").
			Example([]string{"nats://n1:4222", "nats://n2:4222", "nats://n3:4222"}),
		service.NewStringField(fieldBucket).Default("lakestream").LintRule(lintPattern(`^[A-Za-z0-9_-]+$`, "want A-Z a-z 0-9 _ -")).
			Description("Prefix of the KV buckets. Clusters that share servers differ in it."),
		service.NewIntField(fieldReplicas).Default(0).LintRule(lintBetween(0, 5)).
			Description("How many of the servers keep each bucket that is created. 0 means 3 where they form a cluster, else 1."),
		natsAuthField(),
		service.NewTLSToggledField(fieldTLS).
			Description("Encryption of the connections, with certificates of your own where needed. Files are read again for each connection."),
		service.NewBoolField(fieldAllowPlaintext).Default(false).
			Description("Whether credentials may go unencrypted to other machines."),
	).Advanced().Description("Coordination between instances.")
}

func natsAuthField() *service.ConfigField {
	return service.NewObjectField(fieldAuth,
		service.NewStringField(fieldNKeyFile).Default("").Description("Path of a file with the seed of a user's nkey."),
		service.NewStringField(fieldUserCredentialsFile).Default("").
			Description("Path of a file with a user's JWT and seed, for servers with operators and accounts."),
		service.NewStringField(fieldUser).Default("").Description("A user's name."),
		service.NewStringField(fieldPassword).Default("").Secret().Description("The user's password."),
		service.NewStringField(fieldToken).Default("").Secret().Description("The token of servers that have but one."),
	).Description("Who connects to the servers: one of the ways. Files are read again for each connection, so that they can be replaced.")
}

func parseNATS(v *values) engine.NATSOptions {
	return engine.NATSOptions{
		URLs:     v.list(fieldNATS, fieldURLs),
		Bucket:   v.text(fieldNATS, fieldBucket),
		Replicas: read(v, v.conf.FieldInt, fieldNATS, fieldReplicas),
		Auth: engine.NATSAuth{
			NKeyFile:            v.text(fieldNATS, fieldAuth, fieldNKeyFile),
			UserCredentialsFile: v.text(fieldNATS, fieldAuth, fieldUserCredentialsFile),
			User:                v.text(fieldNATS, fieldAuth, fieldUser),
			Password:            engine.Secret(v.text(fieldNATS, fieldAuth, fieldPassword)),
			Token:               engine.Secret(v.text(fieldNATS, fieldAuth, fieldToken)),
		},
		TLS:            v.tls(fieldNATS, fieldTLS),
		AllowPlaintext: v.flag(fieldNATS, fieldAllowPlaintext),
	}
}

// tls reads an object of Benthos's, whose files are read now, to learn of mistakes
// in time, and by each connection later.
func (v *values) tls(path ...string) engine.TLSOptions {
	if !v.conf.Contains(path...) {
		return engine.TLSOptions{}
	}
	conf := v.conf
	_, enabled, err := conf.FieldTLSToggled(path...)
	if err != nil {
		v.fail(err, path...)
	}
	if err != nil || !enabled {
		return engine.TLSOptions{}
	}
	return engine.TLSOptions{
		Load: func() (*tls.Config, error) {
			config, _, err := conf.FieldTLSToggled(path...)
			return config, err
		},
		Source: engine.Secret(fmt.Sprint(read(v, conf.FieldAny, path...))),
	}
}
