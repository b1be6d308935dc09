// Package scale runs an engine with many logs in one shard, and watches what it
// holds of the machine.
//
//	GOMEMLIMIT=1GiB go test ./internal/scale -logs 10000 -count=1 -v
//
// By default it takes fewer logs and only checks that every record is there.
package scale
