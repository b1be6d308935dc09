package engine_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"

	"github.com/lakestream-go/lakestream/engine"
)

// A log is read from any offset, searched, and asked what it holds and where.
func ExampleLog() {
	dir, err := os.MkdirTemp("", "lakestream")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := askLog(context.Background(), dir); err != nil {
		log.Fatal(err)
	}
	// Output:
	// offsets 0 to 4
	// 3 records from offset 1 on
	// offset 2 holds beer
	// the first time after 1002 is at offset 3
	// beer and what sorts after it begins at offset 2
	// offset 2 lies in an entry of offsets [0, 5)
	// it holds 5 records
}

func askLog(ctx context.Context, dir string) error {
	e, err := engine.Open(ctx, engine.Options{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { _ = e.Close(ctx) }()
	words, err := appendWords(ctx, e, "apple", "banana", "beer", "cider", "dates")
	if err != nil {
		return err
	}
	l, err := words.Log(0)
	if err != nil {
		return err
	}
	return tellLog(ctx, l)
}

// appendWords makes a stream without a table of words, a millisecond after one another.
func appendWords(ctx context.Context, e *engine.Engine, words ...string) (*engine.Stream, error) {
	off := false
	stream, err := e.EnsureStream(ctx, "demo/words", engine.StreamConfig{Table: engine.TablePolicy{Enabled: &off}})
	if err != nil {
		return nil, err
	}
	batch := engine.Batch{Logs: []engine.LogRecords{{}}}
	for i, word := range words {
		batch.Logs[0].Records = append(batch.Logs[0].Records, engine.Record{Timestamp: engine.Millis(1000 + i), Value: []byte(word)})
	}
	if err := stream.Append(ctx, &batch); err != nil {
		return nil, err
	}
	return stream, batch.Results[0].Err
}

func tellLog(ctx context.Context, l *engine.Log) error {
	first, _, err := l.First(false) // false: the log is empty
	if err != nil {
		return err
	}
	last, _, err := l.Last()
	if err != nil {
		return err
	}
	fmt.Println("offsets", first, "to", last)
	some, err := l.Read(ctx, 1, engine.ReadLimits{MaxMessages: 3})
	if err != nil {
		return err
	}
	fmt.Println(len(some.Records), "records from offset 1 on")
	one, err := l.ReadOne(ctx, 2)
	if err != nil {
		return err
	}
	fmt.Printf("offset 2 holds %s\n", one.Value)
	at, err := l.Search(ctx, func(r *engine.Positioned) bool { return r.Timestamp > 1002 })
	if err != nil {
		return err
	}
	fmt.Println("the first time after 1002 is at offset", at)
	c, err := l.Search(ctx, func(r *engine.Positioned) bool { return strings.Compare(string(r.Value), "beer") >= 0 })
	if err != nil {
		return err
	}
	fmt.Println("beer and what sorts after it begins at offset", c)
	entry, err := l.Entry(2)
	if err != nil {
		return err
	}
	fmt.Println("offset 2 lies in an entry of offsets", entry.Range)
	n, err := l.Count(engine.OffsetRange{Start: 0, End: 100})
	if err != nil {
		return err
	}
	fmt.Println("it holds", n, "records")
	return nil
}
