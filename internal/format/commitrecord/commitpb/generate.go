// Package commitpb holds the generated Protobuf types of the commit log's payloads.
package commitpb

//go:generate go tool -modfile=../../../../tools/go.mod buf generate
