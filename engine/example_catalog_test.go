package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/lakestream-go/lakestream/engine"
)

// memory opens an engine that keeps everything in memory, for the examples.
func memory(ctx context.Context) (*engine.Engine, func()) {
	e, err := engine.Open(ctx, engine.Options{Storage: engine.StorageOptions{URL: "mem://"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	return e, func() { _ = e.Close(ctx) }
}

// Streams inherit what their namespace says, field by field.
func ExampleEngine_UpdateNamespace() {
	ctx := context.Background()
	e, done := memory(ctx)
	defer done()
	if _, err := e.CreateNamespace(ctx, "shop", engine.NamespaceConfig{}); err != nil {
		log.Fatal(err)
	}
	day, hour, size := 24*time.Hour, time.Hour, int64(1<<30)
	_, err := e.UpdateNamespace(ctx, "shop", func(n *engine.NamespaceConfig) error {
		n.Retention.Time, n.Retention.Bytes = &day, &size
		n.Properties["owner"] = "sales"
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	s, err := e.CreateStream(ctx, "shop/orders", engine.StreamConfig{Retention: engine.Retention{Time: &hour}})
	if err != nil {
		log.Fatal(err)
	}
	info, err := s.Info()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Kept.Time, info.Kept.Bytes)
	fmt.Println(errors.Is(e.DropNamespace(ctx, "shop"), engine.ErrNamespaceNotEmpty))
	// Output:
	// 1h0m0s 1073741824
	// true
}

// A stream that was dropped is gone for ever; its data stays until a purge.
func ExampleEngine_DropStream() {
	ctx := context.Background()
	e, done := memory(ctx)
	defer done()
	if _, err := e.CreateStream(ctx, "shop/orders", engine.StreamConfig{}); err != nil {
		log.Fatal(err)
	}
	for _, purge := range []bool{false, true, true} {
		dropped, err := e.DropStream(ctx, "shop/orders", purge)
		fmt.Println(dropped, err, "kept:", len(e.KeptStreams()))
	}
	_, err := e.CreateStream(ctx, "shop/orders", engine.StreamConfig{})
	fmt.Println(errors.Is(err, engine.ErrStreamPermanentlyDeleted))
	// Output:
	// true <nil> kept: 1
	// true <nil> kept: 0
	// false <nil> kept: 0
	// true
}

// A fence tells those who append why they are refused.
func ExampleStream_Fence() {
	ctx := context.Background()
	e, done := memory(ctx)
	defer done()
	s, err := e.CreateStream(ctx, "shop/orders", engine.StreamConfig{})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Fence(ctx, "the shop moved"); err != nil {
		log.Fatal(err)
	}
	batch := engine.Batch{Logs: []engine.LogRecords{{Records: []engine.Record{{Value: []byte("{}")}}}}}
	if err := s.Append(ctx, &batch); err != nil {
		log.Fatal(err)
	}
	fmt.Println(batch.Results[0].Err)
	// Output:
	// appending to partition 0 of shop/orders: fenced: the shop moved; stream unfence opens it again
}

// Properties come from a source with revisions of its own, and old ones change
// nothing.
func ExampleStream_ReplaceProperties() {
	ctx := context.Background()
	e, done := memory(ctx)
	defer done()
	s, err := e.CreateStream(ctx, "shop/orders", engine.StreamConfig{})
	if err != nil {
		log.Fatal(err)
	}
	for _, source := range []uint64{7, 6, 8} {
		replaced, err := s.ReplaceProperties(ctx, map[string]string{"seen": fmt.Sprint(source)}, source)
		fmt.Println(source, replaced, err)
	}
	info, err := s.Info()
	fmt.Println(info.Properties, err)
	// Output:
	// 7 true <nil>
	// 6 false <nil>
	// 8 true <nil>
	// map[seen:8] <nil>
}

// A table catalog gets a name that policies can refer to.
func ExampleEngine_RegisterTableCatalog() {
	ctx := context.Background()
	e, done := memory(ctx)
	defer done()
	lake := engine.TableCatalog{Name: "lake", Type: "ICEBERG", Connection: map[string]string{"uri": "https://catalog.acme.internal"}}
	fmt.Println(e.RegisterTableCatalog(ctx, lake))
	fmt.Println(errors.Is(e.RegisterTableCatalog(ctx, lake), engine.ErrAlreadyExists))
	fmt.Println(e.UnregisterTableCatalog(ctx, "lake"))
	// Output:
	// <nil>
	// true
	// <nil>
}

// What streams say wins over their namespace, and that over the cluster.
func ExampleStream_ResolveTable() {
	ctx := context.Background()
	e, done := memory(ctx)
	defer done()
	off := false
	if _, err := e.UpdateDefaults(ctx, func(d *engine.Settings) error {
		d.Table.Enabled = &off
		return nil
	}); err != nil {
		log.Fatal(err)
	}
	s, err := e.CreateStream(ctx, "shop/orders", engine.StreamConfig{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := s.ResolveTable()
	fmt.Println(m.Table.Enabled, m.Reason, err)
	on := true
	if err := s.Update(ctx, func(own *engine.Settings) error {
		own.Table.Enabled = &on
		return nil
	}); err != nil {
		log.Fatal(err)
	}
	m, err = s.ResolveTable()
	fmt.Println(m.Table.Enabled, m.Table, err)
	// Output:
	// false table.enabled is false in the cluster's defaults <nil>
	// true shop.orders <nil>
}
