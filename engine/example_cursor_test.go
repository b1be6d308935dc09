package engine_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/lakestream-go/lakestream/engine"
)

// A cursor remembers what was consumed of a partition. What was not acknowledged is
// read again by whoever opens it next.
func ExampleStream_OpenCursor() {
	dir, err := os.MkdirTemp("", "lakestream")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := consume(context.Background(), dir); err != nil {
		log.Fatal(err)
	}
	// Output:
	// reads apple, banana, beer, cider
	// 2 are left
	// reads banana, cider
}

func consume(ctx context.Context, dir string) error {
	e, err := engine.Open(ctx, engine.Options{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { _ = e.Close(ctx) }()
	words, err := appendWords(ctx, e, "apple", "banana", "beer", "cider")
	if err != nil {
		return err
	}
	c, err := words.OpenCursor(ctx, 0, "kitchen")
	if err != nil {
		return err
	}
	if err := readOn(ctx, c); err != nil {
		return err
	}
	if err := c.MarkConsumed(0, nil); err != nil { // offset 0 and all before it
		return err
	}
	if err := c.Ack(engine.OffsetRange{Start: 2, End: 3}); err != nil { // offset 2 alone
		return err
	}
	if err := c.Persist(ctx); err != nil { // until then it is known in memory only
		return err
	}
	left, err := c.Backlog()
	if err != nil {
		return err
	}
	fmt.Println(left, "are left")
	c.Close()

	if c, err = words.OpenCursor(ctx, 0, "kitchen"); err != nil {
		return err
	}
	defer c.Close()
	return readOn(ctx, c)
}

func readOn(ctx context.Context, c *engine.Cursor) error {
	read, err := c.Read(ctx, engine.CursorRead{})
	if err != nil {
		return err
	}
	for i, r := range read.Records {
		if i == 0 {
			fmt.Printf("reads %s", r.Value)
			continue
		}
		fmt.Printf(", %s", r.Value)
	}
	fmt.Println()
	return nil
}
