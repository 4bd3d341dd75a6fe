// Package sweep runs the points of a sweep, such as simulations at several loads,
// on all cores, and goes on where an earlier run was interrupted.
// It makes no promise to other modules.
//
// What a point is, and what comes out of it, is the caller's. A point is run by one
// goroutine, so that nothing about it depends on the number of cores.
package sweep

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/par"
)

// Options is how a sweep runs.
type Options struct {
	// Jobs is how many points run at a time; 0 is one for each CPU.
	Jobs int
	// State, when not "", is a file that has the results of all points that are
	// finished. It is written again, as a whole, after each. A run takes results
	// from it that an earlier one with the same Key has left.
	State string
	// Key is all that the results depend on: input, parameters, version.
	Key [sha256.Size]byte
	// Progress, when not nil, is called with how many points are finished, of all:
	// at the beginning and after each, one call at a time.
	Progress func(done, total int)
}

// Key is the digest of parameters, as JSON, for Options.Key.
func Key(parameters any) ([sha256.Size]byte, error) {
	text, err := json.Marshal(parameters)
	return sha256.Sum256(text), err
}

// Run runs the points 0 to n-1, beginning with the last one: sweeps go up, and what
// takes longest is best begun first. It returns the results in their order. R must
// be the same after encoding to JSON and back.
//
// Errors are those of do, of which the first ends the sweep, ctx's, and those of the
// state file: *fabric.ParseError when it is damaged, *KeyError when it is of another
// sweep. What is finished stays in the state file.
func Run[R any](ctx context.Context, n int, opt Options, do func(ctx context.Context, point int) (R, error)) ([]R, error) {
	st := state[R]{Format: format, Key: hex.EncodeToString(opt.Key[:]), Results: make([]*R, n)}
	if opt.State != "" {
		if err := st.read(opt.State); err != nil {
			return nil, err
		}
	}
	var todo []int
	for i, r := range slices.Backward(st.Results) {
		if r == nil {
			todo = append(todo, i)
		}
	}
	done := n - len(todo)
	progress := func() {
		if opt.Progress != nil {
			opt.Progress(done, n)
		}
	}
	progress()
	var mu sync.Mutex // for st, done, the state file and Progress
	finish := func(i int, r *R) error {
		mu.Lock()
		defer mu.Unlock()
		st.Results[i] = r
		done++
		if opt.State != "" {
			if err := st.write(opt.State); err != nil {
				return err
			}
		}
		progress()
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := par.ForEach(ctx, opt.Jobs, len(todo), func(k int) error {
		r, err := do(ctx, todo[k])
		if err == nil {
			err = finish(todo[k], &r)
		}
		if err != nil {
			cancel(err) // of the others
		}
		return err
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return nil, err
	}
	results := make([]R, n)
	for i, r := range st.Results {
		results[i] = *r
	}
	return results, nil
}

// KeyError says that a state file is of another sweep.
type KeyError struct{ File string }

func (e *KeyError) Error() string {
	return e.File + " is of a sweep with other parameters, other input or another version of ibweave: remove it, or name another file"
}

// state is the state file: this as JSON in one line, and the SHA-256 of that line,
// without its end, in the next.
type state[R any] struct {
	Format  string `json:"format"`
	Key     string `json:"key"`
	Results []*R   `json:"results"` // by point; nil for one that is not finished
}

const format = "ibweave sweep 2"

// maxState bounds state files, in bytes: a million points.
const maxState = 1 << 30

func (st *state[R]) write(name string) error {
	text, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return files.Write(name, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n%x\n", text, sha256.Sum256(text))
		return err
	})
}

// read takes the results that a state file has; it may not be there.
func (st *state[R]) read(name string) error {
	data, err := files.ReadRegular(name, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return st.parse(name, data)
}

func (st *state[R]) parse(name string, data []byte) error {
	damaged := func(line int, why string) error {
		return &fabric.ParseError{File: name, Line: line, Err: fmt.Errorf("%s: this is not a whole state file; remove it to start again", why)}
	}
	text, rest, _ := bytes.Cut(data, []byte("\n"))
	if want := fmt.Sprintf("%x\n", sha256.Sum256(text)); string(rest) != want {
		return damaged(2, "the SHA-256 of line 1 is missing or another one")
	}
	var read state[R]
	if err := json.Unmarshal(text, &read); err != nil || read.Format != format {
		return damaged(1, "no "+format)
	}
	if read.Key != st.Key {
		return &KeyError{name}
	}
	if len(read.Results) != len(st.Results) {
		return damaged(1, fmt.Sprintf("%d points, not %d", len(read.Results), len(st.Results)))
	}
	st.Results = read.Results
	return nil
}
