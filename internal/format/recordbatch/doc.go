// Package recordbatch is the codec of Kafka's RecordBatch v2, in which the log
// keeps its records: Kafka tools read what it writes.
//
// A producer's records become runs (Encoder), outside any lock. Runs of one log
// become a block (AppendBlock): consecutive batches of about TargetBytes, each
// with its own CRC, compressed or not. A Reader walks the batches of a block
// back into records, and NewSource presents blocks as one range of a log.
//
// A stored block does not know its offsets: its first batch has base offset 0
// and the commit log says where the block lies. PatchBase gives a batch its real
// offset, which the CRC does not cover, for those who hand it to a Kafka client.
//
// Stored batches are canonical (FORMAT.md): each field that the CRC does not
// cover has exactly one legal value, so a flipped bit anywhere is found. To add
// a codec, extend Compression, AppendBlock and Reader alike.
package recordbatch
