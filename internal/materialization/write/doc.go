// Package write makes the Parquet data files of a table out of Arrow record
// batches whose fields carry Iceberg field ids.
//
// A Writer starts a file when there is something to write and the next one when
// the file has its target size. A file is durable when Close returned it. What
// an aborted Writer made is removed as well as possible; nothing refers to it,
// so what stays is garbage, never data.
//
// Files have page indexes and complete statistics, so that readers may skip by
// them; a column of values longer than 4 KiB has neither. Encodings are chosen per file from its first batch: delta for integers
// and times, a dictionary for columns of few distinct values, delta lengths for
// other text and bytes.
package write
