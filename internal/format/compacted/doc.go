// Package compacted reads and writes compacted objects: Parquet files that hold
// one range of one log, row by row, without looking into the payloads.
//
// Any Parquet reader can open one. On top of Parquet, each object says which
// range of which log it holds, and carries a checksum of every byte, so that a
// file that is not the one meant, or that changed by a single bit, is refused
// with base.ErrForeign, base.ErrNewerFormat or base.ErrCorrupt and never read as
// data. FORMAT.md gives the layout.
//
// Writer holds one row group in memory. Reader holds the footer; each Scanner
// started from it holds a few pages. The records that a Scanner returns own
// their bytes. To add a column, add it at the end of columns.go, raise
// FormatVersion, and keep reading files that lack it.
package compacted
