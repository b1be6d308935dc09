package engine

import (
	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/coord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
)

// hooks are what a test of this package puts in place of the real thing. The zero
// value changes nothing.
type hooks struct {
	// clock is the machine's where nil.
	clock base.Clock
	// foldVersion is the newest that the engine folds; 0 means all it knows.
	foldVersion uint32
	// coordination and objects wrap the stores.
	coordination func(coord.Store) coord.Store
	objects      func(blob.Store) blob.Store
}

func (h hooks) clockOrSystem() base.Clock {
	if h.clock == nil {
		return base.SystemClock{}
	}
	return h.clock
}

func (h hooks) newestFold() uint32 {
	if h.foldVersion == 0 {
		return commitrecord.FoldVersion
	}
	return h.foldVersion
}

func (h hooks) wrapCoordination(store coord.Store) coord.Store {
	if h.coordination == nil {
		return store
	}
	return h.coordination(store)
}

func (h hooks) wrapObjects(store blob.Store) blob.Store {
	if h.objects == nil {
		return store
	}
	return h.objects(store)
}
