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
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
)

// Options is how a sweep runs.
type Options struct {
	// Jobs is how many points run at a time; 0 is GOMAXPROCS.
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
	results := make([]R, n)
	finished := make([]bool, n)
	done := 0
	if opt.State != "" {
		points, err := readState[R](opt.State, opt.Key, n)
		if err != nil {
			return nil, err
		}
		for _, p := range points {
			results[p.Point], finished[p.Point] = p.Result, true
		}
		done = len(points)
	}
	progress := func() {
		if opt.Progress != nil {
			opt.Progress(done, n)
		}
	}
	progress()
	var mu sync.Mutex // for results, finished, done, the state file and Progress
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(jobs(opt.Jobs))
	for i := n - 1; i >= 0; i-- {
		if finished[i] {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := do(ctx, i)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			results[i], finished[i] = r, true
			done++
			if opt.State != "" {
				if err := writeState(opt.State, opt.Key, results, finished); err != nil {
					return err
				}
			}
			progress()
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if done < n {
		return nil, ctx.Err()
	}
	return results, nil
}

func jobs(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// KeyError says that a state file is of another sweep.
type KeyError struct{ File string }

func (e *KeyError) Error() string {
	return e.File + " is of a sweep with other parameters, other input or another version of ibweave: remove it, or name another file"
}

// state is the state file: this as JSON in one line, and the SHA-256 of that line,
// without its end, in the next.
type state[R any] struct {
	Format string     `json:"format"`
	Key    string     `json:"key"`
	Points []point[R] `json:"points"`
}

type point[R any] struct {
	Point  int `json:"point"`
	Result R   `json:"result"`
}

const format = "ibweave sweep 1"

// maxState bounds state files, in bytes: a million points.
const maxState = 1 << 30

func writeState[R any](name string, key [sha256.Size]byte, results []R, finished []bool) error {
	st := state[R]{Format: format, Key: hex.EncodeToString(key[:])}
	for i := range results {
		if finished[i] {
			st.Points = append(st.Points, point[R]{i, results[i]})
		}
	}
	text, err := json.Marshal(&st)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	return files.Write(name, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n%x\n", text, sum)
		return err
	})
}

// readState gives the points that a state file has; none if there is no file.
func readState[R any](name string, key [sha256.Size]byte, n int) ([]point[R], error) {
	data, err := files.ReadRegular(name, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseState[R](name, data, key, n)
}

func parseState[R any](name string, data []byte, key [sha256.Size]byte, n int) ([]point[R], error) {
	damaged := func(line int, why string) error {
		return &fabric.ParseError{File: name, Line: line, Err: fmt.Errorf("%s: this is not a whole state file; remove it to start again", why)}
	}
	text, rest, _ := bytes.Cut(data, []byte("\n"))
	sum := sha256.Sum256(text)
	if want := hex.EncodeToString(sum[:]) + "\n"; string(rest) != want {
		return nil, damaged(2, "the SHA-256 of line 1 is missing or another one")
	}
	var st state[R]
	if err := json.Unmarshal(text, &st); err != nil || st.Format != format {
		return nil, damaged(1, "no "+format)
	}
	if st.Key != hex.EncodeToString(key[:]) {
		return nil, &KeyError{name}
	}
	last := -1
	for _, p := range st.Points {
		if p.Point <= last || p.Point >= n {
			return nil, damaged(1, fmt.Sprintf("point %d of %d", p.Point, n))
		}
		last = p.Point
	}
	return st.Points, nil
}
