package blob_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
)

// hastyClock lets every back-off end at once.
type hastyClock struct{}

func (hastyClock) Now() time.Time { return time.Unix(1_700_000_000, 0) }
func (hastyClock) After(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- hastyClock{}.Now()
	return c
}

// firstTimes fails the first requests of a method.
func firstTimes(method string, times, status int, code string) func(http.ResponseWriter, string, int) bool {
	return func(w http.ResponseWriter, m string, n int) bool {
		if m != method || n > times {
			return false
		}
		if status == 0 {
			dropConnection(w)
		} else {
			answerError(w, status, code)
		}
		return true
	}
}

// Given a server that cannot serve for a moment, when each call is made, then it
// is repeated until it succeeds, and no more often.
func TestCallsAreRepeatedWhileTheServerRecovers(t *testing.T) {
	trouble := map[string]struct {
		status int
		code   string
	}{
		"slow down":           {http.StatusServiceUnavailable, "SlowDown"},
		"unavailable":         {http.StatusServiceUnavailable, "ServiceUnavailable"},
		"internal error":      {http.StatusInternalServerError, "InternalError"},
		"too many requests":   {http.StatusTooManyRequests, "TooManyRequests"},
		"a conditional write": {http.StatusConflict, "ConditionalRequestConflict"},
		"connection lost":     {0, ""},
	}
	for name, fault := range trouble {
		t.Run(name, func(t *testing.T) {
			fake, store := startFakeS3(t)
			fake.objects["p/a"] = "content"
			calls := map[string]func() error{
				http.MethodPut: func() error { return store.Put(t.Context(), "new", []byte("x")) },
				http.MethodGet: func() error {
					data, err := store.ReadRange(t.Context(), "a", 0, 7, nil)
					if err == nil {
						require.Equal(t, "content", string(data))
					}
					return err
				},
				http.MethodHead:   func() error { _, err := store.Stat(t.Context(), "a"); return err },
				http.MethodDelete: func() error { return store.Delete(t.Context(), "a") },
			}
			for _, method := range []string{http.MethodPut, http.MethodGet, http.MethodHead, http.MethodDelete} {
				fake.fault = firstTimes(method, 3, fault.status, fault.code)
				require.NoError(t, calls[method](), method)
				require.Len(t, fake.take(), 4, method)
			}
			fake.fault = firstTimes(http.MethodGet, 2, fault.status, fault.code)
			_, err := store.List(t.Context(), "", "", 10)
			require.NoError(t, err)
			require.Len(t, fake.take(), 3)
		})
	}
}

// Given a body that came too slowly for the server, when the put is repeated, then
// it succeeds: S3 calls that a bad request.
func TestAPutThatStalledIsRepeated(t *testing.T) {
	fake, store := startFakeS3(t)
	fake.fault = firstTimes(http.MethodPut, 2, http.StatusBadRequest, "RequestTimeout")
	require.NoError(t, store.Put(t.Context(), "a", []byte("x")))
	fake.fault = firstTimes(http.MethodPut, 100, http.StatusBadRequest, "BadDigest")
	fake.take()
	require.ErrorIs(t, store.Put(t.Context(), "b", []byte("x")), base.ErrUnavailable)
	require.Len(t, fake.take(), 1, "the same bytes fail again")
}

// Given a server that stays in trouble, when a call is made, then it ends, with
// the class that says what may have happened.
func TestRetriesEnd(t *testing.T) {
	tests := map[string]struct {
		status      int
		code        string
		times       int
		write, read error
	}{
		"definite":          {http.StatusServiceUnavailable, "SlowDown", 4, base.ErrUnavailable, base.ErrUnavailable},
		"maybe":             {http.StatusInternalServerError, "InternalError", 4, base.ErrUnknown, base.ErrUnavailable},
		"no answer":         {0, "", 4, base.ErrUnknown, base.ErrUnavailable},
		"refused for good":  {http.StatusForbidden, "AccessDenied", 1, base.ErrUnavailable, base.ErrUnavailable},
		"bucket gone":       {http.StatusNotFound, "NoSuchBucket", 1, base.ErrUnavailable, base.ErrUnavailable},
		"unknown condition": {http.StatusNotImplemented, "NotImplemented", 1, base.ErrUnavailable, base.ErrUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fake, store := startFakeS3(t)
			fake.fault = func(w http.ResponseWriter, m string, _ int) bool {
				return firstTimes(m, 100, test.status, test.code)(w, m, 1)
			}
			err := store.Put(t.Context(), "a", []byte("x"))
			require.ErrorIs(t, err, test.write)
			require.Len(t, fake.take(), test.times)
			if test.code != "" {
				require.ErrorContains(t, err, test.code)
			}
			_, err = store.List(t.Context(), "", "", 1)
			require.ErrorIs(t, err, test.read)
			require.NotErrorIs(t, err, base.ErrNotFound)
			require.Len(t, fake.take(), test.times)
			_, err = store.ReadRange(t.Context(), "a", 0, 1, nil)
			require.ErrorIs(t, err, test.read)
			require.NotErrorIs(t, err, base.ErrNotFound, "data that cannot be read is not lost")
		})
	}
}

// Given a put whose answer was lost, when it is repeated and finds its own object,
// then it succeeded.
func TestAPutFindsItsOwnObject(t *testing.T) {
	fake, store := startFakeS3(t)
	fake.lost = func(method string, n int) bool { return method == http.MethodPut && n == 1 }
	for _, content := range []string{"", "content", strings.Repeat("long", 1<<20)} {
		key := "a" + content[:min(1, len(content))]
		fake.take()
		delete(fake.objects, "p/"+key)
		require.NoError(t, store.Put(t.Context(), key, []byte(content)))
		require.Equal(t, content, fake.objects["p/"+key])
	}
}

// Given a put whose request was lost, when somebody else's object is there by the
// time it is repeated, then the key exists and the object stays as it is.
func TestAPutThatLostTheRaceDoesNotTakeAnothersObjectForItsOwn(t *testing.T) {
	for name, others := range map[string]string{"of another size": "someone else's", "of the same size": "CONTENT"} {
		t.Run(name, func(t *testing.T) {
			fake, store := startFakeS3(t)
			fake.fault = func(w http.ResponseWriter, method string, n int) bool {
				if method != http.MethodPut || n > 1 {
					return false
				}
				fake.objects["p/a"] = others
				dropConnection(w)
				return true
			}
			require.ErrorIs(t, store.Put(t.Context(), "a", []byte("content")), base.ErrExists)
			require.Equal(t, others, fake.objects["p/a"])
		})
	}
}

// Given an object that is there from the start, when the same bytes are put, then
// it exists: nobody's answer was lost.
func TestAPutOfWhatIsThereIsRefused(t *testing.T) {
	fake, store := startFakeS3(t)
	fake.objects["p/a"] = "content"
	require.ErrorIs(t, store.Put(t.Context(), "a", []byte("content")), base.ErrExists)
	require.Len(t, fake.take(), 1)
}

// Given an object whose answer was lost, when it cannot be read back, then the
// outcome is unknown.
func TestAPutThatCannotBeComparedIsUnknown(t *testing.T) {
	fake, store := startFakeS3(t)
	fake.lost = func(method string, n int) bool { return method == http.MethodPut && n == 1 }
	fake.fault = firstTimes(http.MethodHead, 100, http.StatusForbidden, "")
	require.ErrorIs(t, store.Put(t.Context(), "a", []byte("content")), base.ErrUnknown)
}

// Given a streamed object whose last answer was lost, when the client repeats the
// request and finds the object, then the commit succeeded.
func TestACommitFindsItsOwnObject(t *testing.T) {
	fake, store := startFakeS3(t)
	fake.lost = func(method string, n int) bool { return method == http.MethodPut && n == 1 }
	w, err := store.Create(t.Context(), "a")
	require.NoError(t, err)
	_, err = w.Write([]byte("content"))
	require.NoError(t, err)
	require.NoError(t, w.Commit())
	require.Contains(t, fake.objects["p/a"], "content")
}

// Given a call that waits to be repeated, when its context ends, then so does it.
func TestACancelledCallIsNotRepeated(t *testing.T) {
	fake, store := startFakeS3(t)
	ctx, cancel := context.WithCancel(t.Context())
	fake.fault = func(w http.ResponseWriter, _ string, _ int) bool {
		cancel()
		answerError(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	}
	require.Error(t, store.Put(ctx, "a", []byte("x")))
	require.Len(t, fake.take(), 1)
}

// Given many objects, when a listing starts after a key, then the server is asked
// for those after it, not for all of them.
func TestAListStartsAfterItsKeyOnTheServer(t *testing.T) {
	fake, store := startFakeS3(t)
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, store.Put(t.Context(), key, nil))
	}
	fake.take()
	found, err := store.List(t.Context(), "", "a", 5)
	require.NoError(t, err)
	require.Len(t, found, 2)
	requests := fake.take()
	require.Len(t, requests, 1)
	require.Contains(t, requests[0], "start-after=p%2Fa")
	require.Contains(t, requests[0], "max-keys=6")
	_, err = store.List(t.Context(), "", "not/a//key", 5)
	require.NoError(t, err)
	require.NotContains(t, fake.take()[0], "start-after", "it could be spelled otherwise there")
}

// Given errors of every kind, when they are shown, then they say what to do and
// hold no secret, not even one that the server sent back.
func TestErrorsOfAServerCanBeShown(t *testing.T) {
	tests := map[string]struct {
		status     int
		code, says string
	}{
		"key":        {http.StatusForbidden, "InvalidAccessKeyId", "correct storage.credentials.id"},
		"secret":     {http.StatusForbidden, "SignatureDoesNotMatch", "correct storage.credentials.secret"},
		"permission": {http.StatusForbidden, "AccessDenied", "leave to read, write, list and delete"},
		"bucket":     {http.StatusNotFound, "NoSuchBucket", "create the bucket or correct storage.url"},
		"region":     {http.StatusMovedPermanently, "PermanentRedirect", "set storage.region"},
		"clock":      {http.StatusForbidden, "RequestTimeTooSkewed", "set the machine's clock"},
		"conditions": {http.StatusNotImplemented, "NotImplemented", "conditional writes"},
		"an echo":    {http.StatusForbidden, "hunter2 hunter3", "leave to read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fake, store := startFakeS3(t)
			fake.fault = firstTimes(http.MethodPut, 100, test.status, test.code)
			err := store.Put(t.Context(), "a", nil)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "hunter")
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, "s3://lake/p", store.String())
		})
	}
}

func TestOpeningABucketThatIsNotThereSaysSo(t *testing.T) {
	fake, _ := startFakeS3(t)
	fake.fault = firstTimes(http.MethodGet, 100, http.StatusNotFound, "NoSuchBucket")
	for endpoint, says := range map[string]string{fake.endpoint: "create the bucket", "http://127.0.0.1:1": "connection refused"} {
		_, err := blob.Open(t.Context(), "s3://lake", blob.Options{Clock: hastyClock{}, Cloud: blob.Cloud{
			Endpoint: endpoint, ForcePathStyleURLs: true, Credentials: blob.Credentials{ID: "me", Secret: "x"},
		}})
		require.ErrorIs(t, err, base.ErrUnavailable)
		require.ErrorContains(t, err, "opening store s3://lake")
		require.ErrorContains(t, err, says)
	}
}
