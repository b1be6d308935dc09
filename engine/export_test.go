package engine

import (
	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// WithClock makes an engine take its time from a clock.
func (o Options) WithClock(clock base.Clock) Options {
	o.hooks.clock = clock
	return o
}

// WithFoldVersion makes an engine one of a release that folds no newer version.
func (o Options) WithFoldVersion(newest uint32) Options {
	o.hooks.foldVersion = newest
	return o
}

// WithCoordination puts something between an engine and its coordination store.
func (o Options) WithCoordination(wrap func(coord.Store) coord.Store) Options {
	o.hooks.coordination = wrap
	return o
}

// WithObjects puts something between an engine and its object store.
func (o Options) WithObjects(wrap func(blob.Store) blob.Store) Options {
	o.hooks.objects = wrap
	return o
}
