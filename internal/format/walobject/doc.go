// Package walobject is the codec of WAL objects: what one flush of one writer
// stores, blocks of many logs in one immutable object.
//
// A Builder appends blocks to a buffer that becomes the object as it is; Parse
// verifies every byte of an object and gives its blocks; Restamp hands a built
// object to another writer. FORMAT.md holds the offset tables.
//
// To change the format, raise Version, keep the header's first 44 bytes as they
// are, and add a golden file.
package walobject
