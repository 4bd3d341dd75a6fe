package open

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// readDatabase is a db_csv, or the error of reading it.
type readDatabase struct {
	*ibdiagnet.Database
	err error
}

// hasPKeys returns true if the database was read and has P_Key tables.
func (d readDatabase) hasPKeys() bool { return d.Database != nil && d.PKeys != nil }

// list lists the dumps in a folder or an archive. It also reads those in an archive.
func (in *Input) list(dir string) (*contents, error) {
	if !files.Archive(dir) {
		return listFolder(dir)
	}
	defer in.stage("read " + dir)()
	c := newContents(dir)
	if in.loaded == nil {
		in.loaded = map[string][]byte{}
	}
	err := files.EachMember(dir, func(m files.Member) error {
		text := bufio.NewReaderSize(m.From, 64<<10)
		head, err := text.Peek(64 << 10)
		if err != nil && err != io.EOF {
			return err
		}
		form, path := dump.Recognize(head), c.path(m.Name)
		c.remove(m.Name) // if two have one name, as tar -r makes them, the last counts
		delete(in.loaded, path)
		delete(in.databases, path)
		if form == dump.Unknown || files.IsArchive(head) {
			return nil
		}
		if form == dump.Database {
			in.keepDatabase(path)(ibdiagnet.Read(path, text, in.databaseOptions()))
		} else if data, err := files.ReadAll(path, text, Limit, new(atomic.Int64)); err != nil {
			return err
		} else {
			in.loaded[path] = in.withoutMark(data)
		}
		c.add(m.Name, form, head)
		return nil
	})
	if err != nil {
		return nil, &Error{err}
	}
	return c, nil
}

func (in *Input) databaseOptions() ibdiagnet.Options {
	return ibdiagnet.Options{Lenient: in.Lenient, Strict: in.Strict}
}

// keepDatabase returns a function that stores what ibdiagnet.Read returned for path.
func (in *Input) keepDatabase(path string) func(*ibdiagnet.Database, error) {
	return func(d *ibdiagnet.Database, err error) {
		if in.databases == nil {
			in.databases = map[string]readDatabase{}
		}
		in.databases[path] = readDatabase{d, err}
	}
}

// databaseAt returns the db_csv in a regular file. It reads each file once.
func (in *Input) databaseAt(path string) (*ibdiagnet.Database, error) {
	if d, known := in.databases[path]; known {
		return d.Database, d.err
	}
	defer in.stage("read " + path)()
	t, err := files.OpenText(path)
	if err != nil {
		return nil, &Error{err}
	}
	defer func() { _ = t.Close() }()
	d, err := ibdiagnet.Read(path, t.From, in.databaseOptions())
	err = notALine(err)
	in.keepDatabase(path)(d, err)
	return d, err
}

// preferWhole moves one of names to the front: the first that is whole, or
// else the first with a fabric. If ibdiagnet wrote it, compareRun will
// compare ibdiagnet's other files in that folder.
func (in *Input) preferWhole(c *contents, names []string) ([]string, error) {
	best := -1
	for i, name := range names {
		whole, err := in.isWhole(c, name)
		if err != nil && (len(names) == 1 || !errors.Is(err, ibdiagnet.ErrNoFabric)) {
			return nil, err
		}
		if err == nil && (best < 0 || whole) {
			best = i
		}
		if whole {
			break
		}
	}
	if best > 0 {
		names = append([]string{names[best]}, slices.Delete(slices.Clone(names), best, best+1)...)
	}
	in.run = c.generated[names[0]]
	for _, name := range names[1:] {
		if in.run && c.generated[name] && filepath.Dir(name) == filepath.Dir(names[0]) {
			in.beside = append(in.beside, c.path(name))
		}
	}
	return names, nil
}

// isWhole returns false if a file is known to be cut short. The error is that of reading a db_csv.
func (in *Input) isWhole(c *contents, name string) (bool, error) {
	path := c.path(name)
	if slices.Contains(c.files[dump.Database], name) {
		d, err := in.databaseAt(path)
		return err == nil && !slices.ContainsFunc(d.Problems, func(p fabric.Problem) bool { return p.Kind == ibdiagnet.CutFile }), err
	}
	data, loaded := in.loaded[path]
	if loaded || !c.generated[name] {
		return !loaded || !lacksEnd(bytes.NewReader(data)), nil
	}
	t, err := files.OpenText(path)
	if err != nil {
		return true, nil // reading it later reports the error
	}
	defer func() { _ = t.Close() }()
	from, plain := t.From.(*io.SectionReader)
	return !plain || !lacksEnd(from), nil
}

// lacksEnd returns true if a file of ibdiagnet lacks the last line that its version prints.
func lacksEnd(from interface {
	io.ReaderAt
	Size() int64
}) bool {
	const near = 4 << 10
	head, tail := make([]byte, min(near, from.Size())), make([]byte, min(near, from.Size()))
	_, err1 := from.ReadAt(head, 0)
	_, err2 := from.ReadAt(tail, from.Size()-int64(len(tail)))
	return (err1 == nil || err1 == io.EOF) && (err2 == nil || err2 == io.EOF) && ibdiagnet.IsCut(head, tail)
}

// compareRun reports where other files of the run differ from topology f.
func (in *Input) compareRun(f *fabric.Fabric) {
	for _, path := range in.beside {
		var problems []fabric.Problem
		g, err := in.besideFabric(path, &problems)
		parse, isParse := errors.AsType[*fabric.ParseError](err)
		switch {
		case errors.Is(err, ibdiagnet.ErrCut) && isParse:
			problems = append(problems, fabric.Problem{Kind: ibdiagnet.CutFile, File: path, Line: parse.Line, Count: 1, Message: parse.Err.Error()})
		case err != nil && in.cut[path]: // its cut is reported already
		case err != nil:
			why := err.Error()
			if isParse { // without the text of the line
				why = fmt.Sprintf("line %d: %v", parse.Line, parse.Err)
			}
			problems = append(problems, fabric.Problem{Kind: ibdiagnet.FilesDisagree, File: path, Count: 1,
				Message: fmt.Sprintf("%s is not read, and not compared with %s: %s", path, in.Topology, why)})
		default:
			problems = append(problems, ibdiagnet.Disagreements(f, g, in.Topology, path)...)
		}
		for _, p := range problems { // one call of tell for each
			in.tell(f, p)
		}
	}
}

// besideFabric reads another file of the run for comparison.
// The only problem it adds is that the file is cut short.
func (in *Input) besideFabric(path string, problems *[]fabric.Problem) (*fabric.Fabric, error) {
	if d, known := in.databases[path]; known {
		if d.err != nil {
			return nil, d.err
		}
		*problems = slices.DeleteFunc(slices.Clone(d.Problems), func(p fabric.Problem) bool { return p.Kind != ibdiagnet.CutFile })
		return d.Fabric, nil
	}
	data, err := in.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, _, err := topology.Parse(path, data, topology.Options{Lenient: in.Lenient})
	return f, err
}

// checkEnd checks that a file of ibdiagnet has its last line. If
// not, it returns an error with Strict, and else reports a problem.
func (in *Input) checkEnd(path string, data []byte) error {
	if in.cut[path] || !lacksEnd(bytes.NewReader(data)) {
		return nil
	}
	if in.cut == nil {
		in.cut = map[string]bool{}
	}
	in.cut[path] = true
	p := fabric.Problem{Kind: ibdiagnet.CutFile, File: path, Line: bytes.Count(data, []byte("\n")) + 1, Count: 1,
		Message: "no last line \"# File closed at\", which this version of ibdiagnet prints: the file is cut short"}
	if in.Strict {
		return &fabric.ParseError{File: path, Line: p.Line, Err: errors.New(p.Message)}
	}
	in.tell(&fabric.Fabric{}, p)
	return nil
}
