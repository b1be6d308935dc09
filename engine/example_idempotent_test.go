package engine_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/lakestream-go/lakestream/engine"
)

// What a producer sends again, in whatever batches, is appended once.
func ExampleStream_Append_idempotent() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "lakestream")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	e, err := engine.Open(ctx, engine.Options{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = e.Close(ctx) }()
	orders, err := e.EnsureStream(ctx, "shop/orders", engine.StreamConfig{})
	if err != nil {
		log.Fatal(err)
	}
	for _, sequences := range [][]engine.ProducerSeq{{0, 1, 2}, {2, 3}} {
		records := make([]engine.Record, len(sequences))
		for i, seq := range sequences {
			records[i].Value = fmt.Appendf(nil, "order %d", seq)
		}
		batch := engine.Batch{Logs: []engine.LogRecords{{Producer: "kafka-eu/orders/0", Sequences: sequences, Records: records}}}
		if err := orders.Append(ctx, &batch); err != nil {
			log.Fatal(err)
		}
		result := batch.Results[0]
		fmt.Println("appended", result.Records, "from offset", result.Base, "- duplicates", result.Duplicates)
	}
	// Output:
	// appended 3 from offset 0 - duplicates []
	// appended 1 from offset 3 - duplicates [0]
}
