package whatif

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Read reads the JSON output of the command. The error is a *fabric.ParseError.
func Read(name string, data []byte) (*Result, error) {
	r := new(Result)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(r)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("more than one JSON value")
		}
	}
	if err != nil {
		line := 1 + bytes.Count(data[:min(int(d.InputOffset()), len(data))], []byte("\n"))
		return nil, &fabric.ParseError{File: name, Line: line, Err: fmt.Errorf("not the result of a shard: %w", err)}
	}
	shard, shards, ok := r.shard()
	if !ok {
		return nil, &fabric.ParseError{File: name, Line: 1, Err: fmt.Errorf("shard %q: want such as 2/5", r.Shard)}
	}
	if r.Fail != Links && r.Fail != Switches {
		return nil, &fabric.ParseError{File: name, Line: 1, Err: fmt.Errorf("%q fails: want links or switches", r.Fail)}
	}
	// Failures are dealt out to the shards in turn.
	if want := (r.Failures + shards - shard) / shards; r.Failures < 0 || len(r.Cases) != want {
		return nil, &fabric.ParseError{File: name, Line: 1, Err: fmt.Errorf("%d cases, want %d for shard %d of %d of %d failures",
			len(r.Cases), want, shard, shards, r.Failures)}
	}
	return r, nil
}

// shard returns which shard r is, and of how many; 1 of 1 for a whole run.
func (r *Result) shard() (shard, shards int, ok bool) {
	if r.Shard == "" {
		return 1, 1, true
	}
	_, err := fmt.Sscanf(r.Shard, "%d/%d", &shard, &shards)
	return shard, shards, err == nil && shard >= 1 && shard <= shards && fmt.Sprintf("%d/%d", shard, shards) == r.Shard
}

// Merge joins the results of all shards, as read by Read, into that of one run
// without shards. names are for errors: shards of different runs, and shards
// that come twice or are missing.
func Merge(names []string, results []*Result) (*Result, error) {
	if len(results) == 0 {
		return nil, fmt.Errorf("no results")
	}
	head := func(r *Result) Result {
		h := *r
		h.Shard, h.Cases = "", nil
		return h
	}
	want := head(results[0])
	all := want
	all.Cases = []Case{} // not null in JSON
	if results[0].Shard == "" && len(results) > 1 {
		return nil, fmt.Errorf("%s is no shard but all of a run", names[0])
	}
	seen := make(map[int]string)
	shards := 1
	for i, r := range results {
		if h := head(r); !reflect.DeepEqual(h, want) {
			return nil, fmt.Errorf("%s and %s are not of the same run: %s", names[0], names[i], difference(&want, &h))
		}
		shard, of, _ := r.shard() // Read refuses others
		if i > 0 && of != shards {
			return nil, fmt.Errorf("%s is one of %d shards, %s one of %d", names[0], shards, names[i], of)
		}
		shards = of
		if other, twice := seen[shard]; twice {
			return nil, fmt.Errorf("%s and %s are both shard %d of %d", other, names[i], shard, of)
		}
		seen[shard] = names[i]
		all.Cases = append(all.Cases, r.Cases...)
	}
	for shard := 1; shard <= shards; shard++ {
		if seen[shard] == "" {
			return nil, fmt.Errorf("shard %d of %d is missing", shard, shards)
		}
	}
	all.Sort("harm")
	return &all, nil
}

// difference names the first member in which two heads differ.
func difference(a, b *Result) string {
	x, y := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			name, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("json"), ",")
			return fmt.Sprintf("%q is %v and %v", name, x.Field(i).Interface(), y.Field(i).Interface())
		}
	}
	return "they differ"
}
