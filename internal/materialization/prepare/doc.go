// Package prepare turns ranges of records into data files of a stream's table
// and of its dead-letter table: it joins packages schema, decode and write over
// the catalog seam of package materialization.
//
// Files are only written under a schema that has landed. Prepare decodes under
// the schema it finds; at the first thing without a column that could get one
// it drops what it wrote, infers from there on, evolves the table, and decodes
// again under what landed. A table that stays as it is costs one read of the
// records.
//
// Nothing that Prepare did is visible in a table but new columns: its files
// become rows when a commit adds them. An attempt that fails removes its files
// as well as it can.
package prepare
