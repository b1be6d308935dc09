// Package decode turns records with JSON payloads into rows of a landed table
// schema, as Arrow record batches.
//
// A Decoder is compiled from the schema once; it then parses each payload once
// and walks it once, putting values straight into column buffers. Columns that
// a row does not mention cost nothing until the batch is made, so that a table
// of thousands of sparse columns is as cheap as its rows are wide.
//
// What becomes of a record depends on the landed schema and the record alone:
//
//   - A payload that is no JSON value, or none at all, is a dead letter; its
//     row goes to DeadLetters.
//   - Any other record lands. A value is found again at the column of its path,
//     or in __overflow under its path, exactly: numbers there keep their text.
//     Nulls, and empty containers that have no column, leave no trace.
//
// A value overflows when no column is at its path, when the column cannot hold
// it without loss (1.5 in a long, 9007199254740993 in a double, text in a
// number, half a surrogate pair in text), or when a twin claimed the column: one
// member of an object does, the first whose name is exactly the column's, else
// the first whose name matches without regard to case, whether or not its value
// fits or is null. An array element that overflows leaves a null in the list, so
// that the others keep their places.
//
// Paths are written as package schema says. When several values of one row
// overflow at one path, the second gets the suffix ~#2, and so on. When the
// overflow of a row would be larger than its payload by more than 64 KiB, each
// field at the top with anything in it stands there once, whole, under its name.
// An array whose elements would take more than 64 MiB even if all were null
// overflows whole. A record time outside the range of the column overflows under
// ~timestamp, in milliseconds.
//
// To fill another type of column, add a kind and say what it holds in scalar.
package decode
