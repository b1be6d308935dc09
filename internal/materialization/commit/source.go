package commit

import (
	"context"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// Source is the log side of one stream and its table: what the fold knows, and
// the record that tells it of progress.
type Source interface {
	// View returns what the fold knows now. It may lag behind what others
	// committed; the table itself is what decides.
	View(ctx context.Context) (View, error)
	// Publish puts a Materialized record and waits until View shows it, or
	// says why it was rejected. Publishing what is known already is no error;
	// after base.ErrUnknown the same may be published again.
	Publish(ctx context.Context, progress Materialized) error
}

// View is what the fold knows of one stream and its table.
type View struct {
	// Owner is the cluster and stream incarnation, as PropertyOwner holds it.
	Owner string
	// Main and DeadLetter are the newest published marks; zero before the first.
	Main, DeadLetter Mark
	// Logs are the stream's partitions.
	Logs []Log
}

// Mark names a table and a commit in it.
type Mark struct {
	TableUUID  string
	SnapshotID int64
	CommitID   string
}

// Log is what the fold knows of one partition.
type Log struct {
	Partition base.Partition
	// Start is where the table's coverage of the log begins.
	Start base.Offset
	// Materialized is the end of what was published as being in the table;
	// Start while nothing was.
	Materialized base.Offset
	// Prepared are the accepted ranges from Materialized on, in order and
	// without a gap.
	Prepared []Range
}

// Range is a prepared range and when it was accepted.
type Range struct {
	materialization.Prepared
	// Accepted is the commit log's time of the Prepared record.
	Accepted base.Millis
}

// Materialized is the progress that a commit made durable.
type Materialized struct {
	Main Mark
	// DeadLetter is the newest mark of the dead-letter table, zero when no
	// record was ever dead-lettered.
	DeadLetter Mark
	// Ends are the new end offsets of the partitions that advanced.
	Ends materialization.EndOffsets
}

// preparedEnd returns the end of what is prepared.
func (l Log) preparedEnd() base.Offset {
	if len(l.Prepared) == 0 {
		return l.Materialized
	}
	return l.Prepared[len(l.Prepared)-1].Range.End
}

// pending returns how many offsets are prepared and not published.
func (v View) pending() int64 {
	var offsets int64
	for _, log := range v.Logs {
		offsets += int64(log.preparedEnd() - log.Materialized)
	}
	return offsets
}
