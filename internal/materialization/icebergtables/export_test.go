package icebergtables

import "github.com/apache/iceberg-go"

// Properties returns those by which another catalog opens the same files.
func (t *Tables) Properties() iceberg.Properties { return t.properties }
