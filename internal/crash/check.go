package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lakestream-go/lakestream/engine"
)

// Report is what a check found, beside that all is well.
type Report struct {
	// Records are in the log, of which Acknowledged are in a ledger: the rest
	// was appended by an instance that died before it could say so.
	Records, Acknowledged int
	Rows, DeadLetters     int64
	// Objects are the objects that the index names, Dead and Orphans those that
	// wait to be reclaimed.
	Objects, Dead, Orphans int
}

// String renders the report for people.
func (r Report) String() string {
	return fmt.Sprintf("%d records, %d acknowledged, %d rows, %d dead letters, in %d objects; %d dead, %d orphans",
		r.Records, r.Acknowledged, r.Rows, r.DeadLetters, r.Objects, r.Dead, r.Orphans)
}

// Check opens the directory to look only, and proves what the package promises of
// every stream in it, given that the last life has drained. It returns everything
// that is wrong, as one error.
func Check(ctx context.Context, dir string) (report Report, err error) {
	e, err := engine.Open(ctx, engine.Options{DataDir: dir, Observe: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	return CheckEngine(ctx, e, dir)
}

// CheckEngine is Check by an engine that is open already.
func CheckEngine(ctx context.Context, e *engine.Engine, dir string) (Report, error) {
	c := checker{at: make(map[string]Ack)}
	errs := []error{checkHealth(ctx, e), c.checkObjects(ctx, e)}
	for _, s := range e.Streams() {
		errs = append(errs, c.checkStream(ctx, s))
	}
	errs = append(errs, c.checkLedgers(dir))
	return c.report, errors.Join(errs...)
}

// healthPatience is how long what instances told before they ended may be shown: it
// outlives them by a time to live, or a few where their server was killed.
const healthPatience = time.Minute

// checkHealth waits until nothing is wrong, or returns what still is.
func checkHealth(ctx context.Context, e *engine.Engine) error {
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	for {
		err := health(context.WithoutCancel(ctx), e)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-engine.SystemClock{}.After(time.Second):
		}
	}
}

func health(ctx context.Context, e *engine.Engine) error {
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

// checkObjects proves that the bucket holds every object that the index names, and
// nothing that nobody could ever explain.
func (c *checker) checkObjects(ctx context.Context, e *engine.Engine) error {
	inventory, err := e.Inventory(ctx)
	if err != nil {
		return err
	}
	c.report.Objects, c.report.Dead, c.report.Orphans = inventory.Live, inventory.Dead, len(inventory.Orphans)
	var errs []error
	for _, key := range inventory.Missing {
		errs = append(errs, fmt.Errorf("object %s is gone", key))
	}
	for _, key := range inventory.Strange {
		errs = append(errs, fmt.Errorf("object %s is of no shard", key))
	}
	return errors.Join(errs...)
}

// checker compares logs with what else is known of them.
type checker struct {
	report Report
	// at is where each attempt is.
	at map[string]Ack
}

// logged is what a log holds at one offset.
type logged struct {
	attempt string
	// decodable is set when the record can become a row.
	decodable bool
}

func (c *checker) checkStream(ctx context.Context, s *engine.Stream) error {
	logs := make([][]logged, s.Partitions())
	for p := range logs {
		var err error
		if logs[p], err = c.readPartition(ctx, s, engine.Partition(p)); err != nil {
			return fmt.Errorf("stream %s: %w", s.Name(), err)
		}
		c.report.Records += len(logs[p])
	}
	if err := c.checkTable(ctx, s, logs); err != nil {
		return fmt.Errorf("stream %s: %w", s.Name(), err)
	}
	return nil
}

// readPartition reads every record of a partition, which fails when the index names
// an object that is not there, and finds attempts that are there twice.
func (c *checker) readPartition(ctx context.Context, s *engine.Stream, p engine.Partition) (records []logged, err error) {
	log, err := s.Log(p)
	if err != nil {
		return nil, err
	}
	start, head, err := log.Bounds()
	if err != nil {
		return nil, err
	}
	if start != 0 {
		return nil, fmt.Errorf("partition %d starts at %d", p, start)
	}
	for next := engine.Offset(0); next < head; {
		batch, err := log.Read(ctx, next, engine.ReadLimits{})
		if err != nil {
			return nil, fmt.Errorf("reading partition %d from %d of %d: %w", p, next, head, err)
		}
		for _, r := range batch.Records {
			if r.Offset != next {
				return nil, fmt.Errorf("partition %d has offset %d where %d should be", p, r.Offset, next)
			}
			one, err := c.record(Ack{Stream: s.Name(), Partition: p, Offset: r.Offset}, r.Value)
			if err != nil {
				return nil, err
			}
			records = append(records, one)
			next++
		}
	}
	return records, nil
}

func (c *checker) record(here Ack, payload []byte) (one logged, err error) {
	one.attempt, one.decodable, err = attemptOf(payload)
	if err != nil {
		return one, fmt.Errorf("at %+v: %w", here, err)
	}
	here.Attempt = one.attempt
	if other, twice := c.at[one.attempt]; twice {
		return one, fmt.Errorf("an attempt is in the log twice: %+v and %+v", other, here)
	}
	c.at[one.attempt] = here
	return one, nil
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
			if ack.Offset == Somewhere {
				ack.Offset = found.Offset
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
func (c *checker) checkTable(ctx context.Context, s *engine.Stream, logs [][]logged) error {
	table := s.Table()
	verified, err := table.Verify(ctx)
	if err != nil {
		return err
	}
	if err := verified.Complete(); err != nil {
		return err
	}
	total := 0
	for _, p := range verified.Partitions {
		c.report.Rows += p.Rows
		c.report.DeadLetters += p.DeadLetters
		total += len(logs[p.Partition])
		var rows, letters int64
		for _, r := range logs[p.Partition] {
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
	return c.checkRows(ctx, s, total)
}

func (c *checker) checkRows(ctx context.Context, s *engine.Stream, most int) error {
	rows, err := s.Table().Head(ctx, []string{"__partition", "__offset", "attempt"}, most+1)
	if err != nil {
		return err
	}
	for _, row := range rows {
		at := Ack{Stream: s.Name()}
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
