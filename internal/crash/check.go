package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lakestream-go/lakestream/engine"
)

// Report is what a check found, beside that all is well.
type Report struct {
	// Records are in the log, of which Acknowledged are in a ledger: the rest
	// was appended by an instance that died before it could say so.
	Records, Acknowledged int
	Rows, DeadLetters     int64
}

func (r Report) String() string {
	return fmt.Sprintf("%d records, %d acknowledged, %d rows, %d dead letters", r.Records, r.Acknowledged, r.Rows, r.DeadLetters)
}

// Check opens the directory to look only, and proves what the package promises of a
// stream whose last life has drained. It returns everything that is wrong, as one
// error.
func Check(ctx context.Context, dir, stream string) (report Report, err error) {
	e, err := engine.Open(ctx, engine.Options{DataDir: dir, Observe: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	return CheckEngine(ctx, e, dir, stream)
}

// CheckEngine is Check by an engine that is open already.
func CheckEngine(ctx context.Context, e *engine.Engine, dir, stream string) (Report, error) {
	s, err := e.Stream(stream)
	if err != nil {
		return Report{}, err
	}
	c := checker{stream: s, at: make(map[string]Ack)}
	err = errors.Join(checkHealth(ctx, e), c.readLog(ctx))
	if err != nil {
		return c.report, err
	}
	return c.report, errors.Join(c.checkLedgers(dir), c.checkTable(ctx))
}

func checkHealth(ctx context.Context, e *engine.Engine) error {
	var errs []error
	status := e.Status(ctx)
	for _, p := range status.Problems {
		errs = append(errs, fmt.Errorf("problem: %s: %s", p.What, p.Reason))
	}
	for _, s := range status.Shards {
		if s.Stopped != "" {
			errs = append(errs, fmt.Errorf("shard %s stopped: %s", s.Shard, s.Stopped))
		}
	}
	return errors.Join(errs...)
}

// checker compares a stream's log with what else is known of it.
type checker struct {
	stream *engine.Stream
	report Report
	// logs holds the attempts of each partition, by offset, and whether each
	// can become a row.
	logs [][]logged
	// at is where each attempt is in the log.
	at map[string]Ack
}

type logged struct {
	attempt   string
	decodable bool
}

// readLog reads every record of every partition, which fails when the index names
// an object that is not there, and finds attempts that are there twice.
func (c *checker) readLog(ctx context.Context) error {
	var errs []error
	for p := range c.stream.Partitions() {
		errs = append(errs, c.readPartition(ctx, engine.Partition(p))) //nolint:gosec // few
	}
	return errors.Join(errs...)
}

func (c *checker) readPartition(ctx context.Context, p engine.Partition) error {
	log, err := c.stream.Log(p)
	if err != nil {
		return err
	}
	start, head, err := log.Bounds()
	if err != nil {
		return err
	}
	if start != 0 {
		return fmt.Errorf("partition %d starts at %d", p, start)
	}
	var records []logged
	for next := engine.Offset(0); next < head; {
		batch, err := log.Read(ctx, next, engine.ReadLimits{})
		if err != nil {
			return fmt.Errorf("reading partition %d from %d of %d: %w", p, next, head, err)
		}
		for _, r := range batch.Records {
			if r.Offset != next {
				return fmt.Errorf("partition %d has offset %d where %d should be", p, r.Offset, next)
			}
			one, err := c.record(p, r)
			if err != nil {
				return err
			}
			records = append(records, one)
			next++
		}
	}
	c.logs = append(c.logs, records)
	c.report.Records += len(records)
	return nil
}

func (c *checker) record(p engine.Partition, r engine.Positioned) (logged, error) {
	name, decodable, err := attemptOf(r.Value)
	if err != nil {
		return logged{}, fmt.Errorf("partition %d, offset %d: %w", p, r.Offset, err)
	}
	here := Ack{Attempt: name, Partition: p, Offset: r.Offset}
	if other, twice := c.at[name]; twice {
		return logged{}, fmt.Errorf("attempt %s is in the log twice: %+v and %+v", name, other, here)
	}
	c.at[name] = here
	return logged{attempt: name, decodable: decodable}, nil
}

// checkLedgers finds each acknowledged record where it was said to be.
func (c *checker) checkLedgers(dir string) error {
	paths, err := ledgers(dir)
	if err != nil {
		return err
	}
	for _, path := range paths {
		acks, err := ReadLedger(path)
		if err != nil {
			return err
		}
		for _, ack := range acks {
			found, ok := c.at[ack.Attempt]
			if !ok {
				return fmt.Errorf("%s: acknowledged %+v is lost", path, ack)
			}
			if found != ack {
				return fmt.Errorf("%s: acknowledged %+v is at %+v", path, ack, found)
			}
		}
		c.report.Acknowledged += len(acks)
	}
	return nil
}

// checkTable has the table verified, which proves that each offset is there once,
// and compares each row with the record at its offset.
func (c *checker) checkTable(ctx context.Context) error {
	table := c.stream.Table()
	verified, err := table.Verify(ctx)
	if err != nil {
		return err
	}
	if err := verified.Complete(); err != nil {
		return err
	}
	for _, p := range verified.Partitions {
		c.report.Rows += p.Rows
		c.report.DeadLetters += p.DeadLetters
		var rows, letters int64
		for _, r := range c.logs[p.Partition] {
			if r.decodable {
				rows++
			} else {
				letters++
			}
		}
		if rows != p.Rows || letters != p.DeadLetters {
			return fmt.Errorf("partition %d has %d rows and %d dead letters of %d and %d", p.Partition, p.Rows, p.DeadLetters, rows, letters)
		}
	}
	return c.checkRows(ctx, table)
}

func (c *checker) checkRows(ctx context.Context, table *engine.Table) error {
	rows, err := table.Head(ctx, []string{"__partition", "__offset", "attempt"}, c.report.Records+1)
	if err != nil {
		return err
	}
	for _, row := range rows {
		var at Ack
		err := errors.Join(json.Unmarshal(row["__partition"], &at.Partition),
			json.Unmarshal(row["__offset"], &at.Offset), json.Unmarshal(row["attempt"], &at.Attempt))
		if err != nil {
			return fmt.Errorf("reading a row: %w", err)
		}
		if found := c.at[at.Attempt]; found != at {
			return fmt.Errorf("the row %+v is not the record %+v", at, found)
		}
	}
	return nil
}
