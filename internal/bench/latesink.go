package main

import (
	"context"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"

	"github.com/lakestream-go/lakestream/internal/base"
)

// lateSink is a sink that does nothing, but answers many batches at a time, as
// whatever commits in groups does.
type lateSink struct {
	sink
	waiting chan chan struct{}
	done    chan struct{}
	clock   base.Clock
}

const (
	// lateBatches in flight are the output's default; half of them are answered
	// at once, or what there is after latePause.
	lateBatches = 512
	latePause   = 2 * time.Millisecond
)

func lateOutput(*service.ParsedConfig, *service.Resources) (service.BatchOutput, service.BatchPolicy, int, error) {
	s := &lateSink{waiting: make(chan chan struct{}, lateBatches), done: make(chan struct{}), clock: base.SystemClock{}}
	return s, service.BatchPolicy{}, lateBatches, nil
}

func (s *lateSink) Connect(context.Context) error {
	go s.answer()
	return nil
}

func (s *lateSink) Close(context.Context) error {
	close(s.done)
	return nil
}

// WriteBatch implements service.BatchOutput. Every batch is answered: the pipeline
// closes the sink after its last one.
func (s *lateSink) WriteBatch(ctx context.Context, batch service.MessageBatch) error {
	answered := make(chan struct{})
	s.waiting <- answered
	<-answered
	return s.sink.WriteBatch(ctx, batch)
}

func (s *lateSink) answer() {
	var group []chan struct{}
	pause := s.clock.After(latePause)
	for {
		full := false
		select {
		case one := <-s.waiting:
			group = append(group, one)
			full = len(group) == lateBatches/2
		case <-pause:
			full, pause = true, s.clock.After(latePause)
		case <-s.done:
			return
		}
		if full {
			for _, one := range group {
				close(one)
			}
			group = group[:0]
		}
	}
}
