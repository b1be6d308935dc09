// Package segment is the codec of commit log segments: consecutive records of one
// shard's commit log, as they were delivered, for the time when the log is lost.
//
// Encode makes an object of entries; Decode verifies one and gives them back. A
// hash runs over all archived entries, and a segment carries it from before its
// first and after its last one: segments that follow each other fit, and two that
// overlap can be compared. FORMAT.md holds the offset tables.
//
// To change the format, raise Version, keep the first six and the last four bytes
// as they are, and add a golden file.
package segment
