package history

import "sync"

// trouble is why a job last failed. It is safe for concurrent use.
type trouble struct {
	mu  sync.Mutex
	err error // guarded by mu
}

// swap notes how the job fared and returns how it did before.
func (t *trouble) swap(err error) (before error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, t.err = t.err, err
	return before
}

func (t *trouble) get() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// isNews reports whether a failure is to be told of: it was not told before.
func isNews(before, err error) bool {
	return err != nil && (before == nil || before.Error() != err.Error())
}
