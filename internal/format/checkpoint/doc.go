// Package checkpoint is the codec of checkpoints: the folded state of one commit
// shard at one revision, as tables of columns.
//
// The codec knows no state. A section is a table: a number that says what it
// holds, and columns of numbers or of texts; package shard says which
// sections there are and turns a state into them and back. An Encoder is filled
// row by row and gives the object; Open verifies an object whole, and a Rows reads
// a section row by row, one decompressed chunk a column at a time, so that reading
// takes little memory beside the object and what the reader keeps. The same state
// always gives the same bytes. FORMAT.md holds the offset tables and the sections.
//
// To add to a state, add a section, or a column at the end of one, and raise
// Version: a reader that meets a newer version, or a section or column that it
// does not know, must refuse the whole (base.ErrNewerFormat).
package checkpoint
