//go:build !linux

package natskv

// networkFileSystem cannot tell here.
func networkFileSystem(string) string { return "" }
