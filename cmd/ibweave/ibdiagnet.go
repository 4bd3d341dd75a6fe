package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
)

// fromRun is what an audit has of a run of ibdiagnet.
type fromRun struct {
	ofIbdiagnet bool                    // ibdiagnet wrote the topology
	beside      []string                // other files of the run with a topology
	databases   map[string]readDatabase // by path: those that are read
	database    *ibdiagnet.Database     // that the topology came from; nil for none
	ends        map[string]bool         // by path: files whose end was looked at
}

// readDatabase is a db_csv, or the error of reading it.
type readDatabase struct {
	*ibdiagnet.Database
	err error
}

// hasPKeys says whether the database was read and has P_Key tables.
func (d readDatabase) hasPKeys() bool { return d.Database != nil && d.PKeys != nil }

// isFolder says whether a name is that of a directory or of an archive.
func isFolder(name string) bool {
	if name == "-" {
		return false
	}
	info, err := os.Stat(name)
	return err == nil && info.IsDir() || files.Archive(name)
}

// isDatabase says whether a name is that of a regular file with a db_csv.
func isDatabase(name string) bool {
	form, _, err := formOf(name)
	return name != "-" && err == nil && form == dump.Database
}

// isFolderAlone says whether -t names a folder, and no other flag names files: all that is
// in the folder counts then.
func (in *audit) isFolderAlone() bool {
	return in.topology != "" && !in.hasTables() && in.plft == "" && in.sl2vl == "" && in.pathSL == "" && in.mfts == "" && in.groups == "" && isFolder(in.topology)
}

// list finds the dumps of a folder or an archive. Those of an archive are read.
func (a *app) list(in *audit, dir string) (*contents, error) {
	if !files.Archive(dir) {
		return listFolder(dir)
	}
	s := a.startStage("read " + dir)
	defer s.End()
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
		c.remove(m.Name) // of two with one name, as tar -r makes them, the last counts
		delete(in.loaded, path)
		delete(in.databases, path)
		if form == dump.Unknown || files.IsArchive(head) {
			return nil
		}
		if form == dump.Database {
			in.keepDatabase(path)(ibdiagnet.Read(path, text, a.databaseOptions(in)))
		} else if data, err := files.ReadAll(path, text, inputLimit, new(atomic.Int64)); err != nil {
			return err
		} else {
			in.loaded[path] = a.withoutMark(data)
		}
		c.add(m.Name, form, head)
		return nil
	})
	if err != nil {
		return nil, &inputError{err}
	}
	return c, nil
}

func (a *app) databaseOptions(in *audit) ibdiagnet.Options {
	return ibdiagnet.Options{Lenient: in.lenient, Strict: a.strict}
}

// keepDatabase keeps a database or the error of reading it.
func (in *audit) keepDatabase(path string) func(*ibdiagnet.Database, error) {
	return func(d *ibdiagnet.Database, err error) {
		if in.databases == nil {
			in.databases = map[string]readDatabase{}
		}
		in.databases[path] = readDatabase{d, err}
	}
}

// databaseAt reads a db_csv of a regular file, once.
func (a *app) databaseAt(in *audit, path string) (*ibdiagnet.Database, error) {
	if d, known := in.databases[path]; known {
		return d.Database, d.err
	}
	s := a.startStage("read " + path)
	defer s.End()
	t, err := files.OpenText(path)
	if err != nil {
		return nil, &inputError{err}
	}
	defer func() { _ = t.Close() }()
	d, err := ibdiagnet.Read(path, t.From, a.databaseOptions(in))
	err = parseOrInput(err)
	in.keepDatabase(path)(d, err)
	return d, err
}

// preferWhole puts the first file of the run that is whole in front of the others, or one
// that has a fabric at least. It notes which of them are to be compared with the first.
func (a *app) preferWhole(in *audit, c *contents, names []string) ([]string, error) {
	best := -1
	for i, name := range names {
		whole, err := a.isWhole(in, c, name)
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
	in.ofIbdiagnet = c.generated[names[0]]
	for _, name := range names[1:] {
		if in.ofIbdiagnet && c.generated[name] && filepath.Dir(name) == filepath.Dir(names[0]) {
			in.beside = append(in.beside, c.path(name))
		}
	}
	return names, nil
}

// isWhole says whether a file is not known to be cut. Errors are those of a db_csv.
func (a *app) isWhole(in *audit, c *contents, name string) (bool, error) {
	path := c.path(name)
	if slices.Contains(c.files[dump.Database], name) {
		d, err := a.databaseAt(in, path)
		return err == nil && !isCut(d.Problems), err
	}
	data, loaded := in.loaded[path]
	if loaded || !c.generated[name] {
		return !loaded || !lacksEnd(bytes.NewReader(data)), nil
	}
	t, err := files.OpenText(path)
	if err != nil {
		return true, nil // who reads it says so
	}
	defer func() { _ = t.Close() }()
	from, plain := t.From.(*io.SectionReader)
	return !plain || !lacksEnd(from), nil
}

// lacksEnd says whether a file of ibdiagnet has not the last line that its version prints.
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

func isCut(problems []fabric.Problem) bool {
	return slices.ContainsFunc(problems, func(p fabric.Problem) bool { return p.Kind == ibdiagnet.CutFile })
}

// enter finds the topology in the folder or archive that -t names.
func (a *app) enter(in *audit) error {
	if in.topology == "" || in.loaded[in.topology] != nil || in.databases[in.topology] != (readDatabase{}) || !isFolder(in.topology) {
		return nil
	}
	inside := audit{lenient: in.lenient}
	if err := a.resolve(&inside, in.topology, false); err != nil {
		return err
	}
	in.topology, in.compiled = inside.topology, inside.compiled
	if in.loaded == nil {
		in.loaded = map[string][]byte{}
	}
	maps.Copy(in.loaded, inside.loaded)
	in.fromRun = inside.fromRun
	return nil
}

// fabricOf reads the fabric of an audit: from a text of any form, and from a folder or
// archive with one.
func (a *app) fabricOf(in *audit) (*fabric.Fabric, error) { return a.fabricBy(in, in) }

// fabricBy is fabricOf where another audit has read the topology already: what is noticed
// goes into in.
func (a *app) fabricBy(in, from *audit) (*fabric.Fabric, error) {
	if err := a.enter(from); err != nil {
		return nil, err
	}
	if from != in {
		in.topology, in.fromRun = from.topology, from.fromRun
	}
	name := from.topology
	if _, known := from.databases[name]; known || isDatabase(name) {
		d, err := a.databaseAt(from, name)
		if err != nil {
			return nil, err
		}
		return a.fabricOfDatabase(in, from, d)
	}
	data, err := a.readAudited(from, name)
	if err != nil {
		return nil, err
	}
	if dump.Recognize(data) == dump.Database { // from standard input
		d, err := ibdiagnet.Read(name, bytes.NewReader(data), a.databaseOptions(in))
		if err != nil {
			return nil, err
		}
		return a.fabricOfDatabase(in, from, d)
	}
	f, err := a.parseTopology(in, name, data)
	if err != nil {
		return nil, err
	}
	if from.compiled != nil && name == filepath.Join(from.compiled.Path, outdir.TopologyName) {
		if f, err = from.compiled.WithVirtualLIDs(f); err != nil {
			return nil, &inputError{err}
		}
	}
	if in.places != nil {
		in.places.readTopology(name, data)
	}
	a.compareRun(in, from, f)
	return f, nil
}

// fabricOfDatabase takes the fabric of a db_csv and what is noticed in it.
func (a *app) fabricOfDatabase(in, from *audit, d *ibdiagnet.Database) (*fabric.Fabric, error) {
	f, err := a.named(d.Fabric)
	if err != nil {
		return nil, err
	}
	in.database = d
	if d.Virtual > 0 && !in.asFindings {
		fmt.Fprintf(a.stderr, "%s: virtual ports have %s of their own: check holds tables to them, and compile gives them the entries of their ports (with --lids keep)\n", from.topology, text.CountGrouped(d.Virtual, "LID", "LIDs"))
	}
	if in.places != nil && !in.places.only {
		in.places.readDatabase(from.topology, d)
	}
	if in.sums != nil {
		in.sums[from.topology] = textSum(topology.Append(nil, f))
	}
	in.addUndecidedTopology(from.topology, d.Problems)
	a.tellProblems(in, f, d.Problems)
	for _, p := range d.Notice(from.topology) { // each is a finding of its own
		a.tellProblems(in, f, []fabric.Problem{p})
	}
	a.compareRun(in, from, f)
	return f, nil
}

// compareRun compares the topology with the other files of the run.
func (a *app) compareRun(in, from *audit, f *fabric.Fabric) {
	for _, path := range from.beside {
		var problems []fabric.Problem
		g, err := a.besideFabric(from, path, &problems)
		parse, isParse := errors.AsType[*fabric.ParseError](err)
		switch {
		case errors.Is(err, ibdiagnet.ErrCut) && isParse:
			problems = append(problems, fabric.Problem{Kind: ibdiagnet.CutFile, File: path, Line: parse.Line, Count: 1, Message: parse.Err.Error()})
		case err != nil && in.ends[path]: // that it is cut is said already
		case err != nil:
			why := err.Error()
			if isParse { // without the text of the line
				why = fmt.Sprintf("line %d: %v", parse.Line, parse.Err)
			}
			problems = append(problems, fabric.Problem{Kind: ibdiagnet.FilesDisagree, File: path, Count: 1,
				Message: fmt.Sprintf("%s is not read, and not compared with %s: %s", path, from.topology, why)})
		default:
			problems = append(problems, ibdiagnet.Disagreements(f, g, from.topology, path)...)
		}
		for _, p := range problems { // each is a finding of its own
			a.tellProblems(in, f, []fabric.Problem{p})
		}
	}
}

// besideFabric reads a file of the run for comparison. Of what is noticed in it, it counts
// only that it is cut.
func (a *app) besideFabric(from *audit, path string, problems *[]fabric.Problem) (*fabric.Fabric, error) {
	if d, known := from.databases[path]; known {
		if d.err != nil {
			return nil, d.err
		}
		*problems = slices.DeleteFunc(slices.Clone(d.Problems), func(p fabric.Problem) bool { return p.Kind != ibdiagnet.CutFile })
		return d.Fabric, nil
	}
	data, err := a.readAudited(from, path)
	if err != nil {
		return nil, err
	}
	if dump.Recognize(data) == dump.SubnetList {
		f, _, err := dump.ReadSubnetList(path, data, dump.Options{Lenient: from.lenient})
		return f, err
	}
	f, _, err := topology.Parse(path, data, topology.Options{Lenient: from.lenient})
	return f, err
}

// checkEnd looks whether a file of ibdiagnet has its last line: with --strict it is an
// error that it does not, else a finding.
func (a *app) checkEnd(in *audit, path string, data []byte) error {
	if in.ends[path] || !lacksEnd(bytes.NewReader(data)) {
		return nil
	}
	if in.ends == nil {
		in.ends = map[string]bool{}
	}
	in.ends[path] = true
	p := fabric.Problem{Kind: ibdiagnet.CutFile, File: path, Line: bytes.Count(data, []byte("\n")) + 1, Count: 1,
		Message: "no last line \"# File closed at\", which this version of ibdiagnet prints: the file is cut short"}
	if a.strict {
		return &fabric.ParseError{File: path, Line: p.Line, Err: errors.New(p.Message)}
	}
	a.tellProblems(in, &fabric.Fabric{}, []fabric.Problem{p})
	return nil
}

// readDatabase takes the lines of a db_csv: of nodes in NODES and of ports in LINKS.
func (p *lineFinder) readDatabase(name string, d *ibdiagnet.Database) {
	p.topology = name
	f := d.Fabric
	for n := range fabric.NodeID(f.NumNodes()) {
		g := f.Node(n).GUID
		p.nodes[g] = d.NodeLine(g)
		for num := range f.Node(n).NumPorts + 1 {
			if line := d.PortLine(f.Port(n, num)); line > 0 {
				p.ports[topology.NodePort{Node: g, Port: num}] = line
			}
		}
	}
}
