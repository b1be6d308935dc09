// Package commitpb holds the generated Protobuf types of the commit log's payloads.
package commitpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative commit.proto
