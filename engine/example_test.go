package engine_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/lakestream-go/lakestream/engine"
)

// An engine over one directory: a record that was appended is durable and has its
// offset, is read back from the log, and becomes a row of the stream's table.
func Example() {
	dir, err := os.MkdirTemp("", "lakestream")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := run(context.Background(), dir); err != nil {
		log.Fatal(err)
	}
	// Output:
	// appended at offset 0
	// read {"id":7,"item":"tea"} at offset 0
	// row 7 of shop.orders: "tea"
}

func run(ctx context.Context, dir string) error {
	e, err := engine.Open(ctx, engine.Options{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { _ = e.Close(ctx) }()
	orders, err := e.EnsureStream(ctx, "shop/orders", engine.StreamConfig{
		Table: engine.TablePolicy{CommitInterval: time.Second},
	})
	if err != nil {
		return err
	}

	batch := engine.Batch{Logs: []engine.LogRecords{{Records: []engine.Record{
		{Timestamp: engine.Millis(1_700_000_000_000), Value: []byte(`{"id":7,"item":"tea"}`)},
	}}}}
	if err := orders.Append(ctx, &batch); err != nil {
		return err
	}
	if err := batch.Results[0].Err; err != nil { // each partition has its own
		return err
	}
	fmt.Println("appended at offset", batch.Results[0].Base)

	partition, err := orders.Log(0)
	if err != nil {
		return err
	}
	records, err := partition.Tail(ctx, 0, engine.ReadLimits{})
	if err != nil {
		return err
	}
	for _, r := range records.Records {
		fmt.Printf("read %s at offset %d\n", r.Value, r.Offset)
	}

	table := orders.Table()
	if err := table.WaitCaughtUp(ctx); err != nil {
		return err
	}
	rows, err := table.Head(ctx, []string{"id", "item"}, 10)
	if err != nil {
		return err
	}
	for _, row := range rows {
		fmt.Printf("row %s of %s: %s\n", row["id"], table.Name(), row["item"])
	}
	return nil
}
