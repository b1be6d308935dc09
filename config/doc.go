// Package config is the configuration of Lakestream's Benthos components: the
// names of their fields, the specs that Benthos lints and documents, and the
// parsers that turn a parsed configuration into options of package engine.
//
// A field stands here only when it works. Every error names the field as the user
// wrote it and says what is wanted. To add a field, name it in fields.go, put it
// into a spec with its description, default and lint rule, and read it in the
// parser beside the spec; then regenerate the reference with go generate.
package config

//go:generate go run ./docgen ../docs/reference
