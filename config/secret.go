package config

import "github.com/lakestream-go/lakestream/engine"

// Secret is text that shows as stars wherever it is printed, logged or encoded.
type Secret = engine.Secret
