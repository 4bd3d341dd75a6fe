package ibweave

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"

	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// Version is the release of the program and of this package.
const Version = outdir.Version

// ReadFabric reads a fabric from a file with a topology in any form that `ibweave help forms`
// lists. zstd or gzip may have compressed it.
func ReadFabric(file string) (*fabric.Fabric, error) {
	in := open.Input{Files: Files{Topology: file}}
	return in.Fabric()
}

// ParseFabric makes a fabric of a text that ReadFabric could read from a file. name is what
// errors call the text.
func ParseFabric(name string, text []byte) (*fabric.Fabric, error) {
	name = cmp.Or(name, "text")
	in := open.Input{Files: Files{Topology: name}}
	in.Load(name, text)
	return in.Fabric()
}

// Engines lists the names of the engines for Compile.
func Engines() []string {
	names := make([]string, len(compile.Engines))
	for i := range compile.Engines {
		names[i] = compile.Engines[i].Name()
	}
	return names
}

// Compile assigns LIDs, routes f with an engine, makes the trees of multicast groups, and
// verifies all of it. Tables with findings are no error: see the Verify of the result.
// Errors are those of [compile.Run]; *lft.DomainError says that the engine does not support
// the fabric.
func Compile(ctx context.Context, f *fabric.Fabric, engine string, opt compile.Options) (*compile.Result, error) {
	e, err := compile.EngineByName(engine)
	if err != nil {
		return nil, err
	}
	return compile.Run(ctx, f, e, opt)
}

// Open reads a state: a directory that compile wrote, a folder of dumps under any names, a run of
// ibdiagnet, an archive of one of these, or a topology. The state says from which files, what was
// odd in them, and what they leave undecided. Errors have file and line, and say what a folder lacks.
func Open(ctx context.Context, path string) (*state.State, error) {
	return open.Path(ctx, path, open.Options{Findings: true, TakeAdaptive: true, TakePKeys: true, TakeLines: true, Sums: map[string]string{}})
}

// Files names the file of each part of a state; "" for none.
type Files = open.Files

// OpenFiles is Open for files that are named: a topology, and what belongs to it.
func OpenFiles(ctx context.Context, names Files) (*state.State, error) {
	return open.Named(ctx, names, open.Options{Findings: true, TakeLines: true, Sums: map[string]string{}})
}

// Verify checks that the tables of a state deliver all packets, without loops and without credit
// loops. The tables may come from anywhere. What was odd in their files is among the findings, and
// rules that the files leave undecided are in Undecided.
func Verify(ctx context.Context, s *state.State, opt verify.Options) (*verify.Result, error) {
	return capture.Check(ctx, s, opt)
}

// WriteSARIF writes the result of verifying a state as SARIF 2.1.0, which code hosts show. Findings
// of a state that Open or OpenFiles read have their lines.
func WriteSARIF(w io.Writer, s *state.State, r *verify.Result) error {
	topology, _ := s.Source(state.Topology)
	tables, _ := s.Source(state.ForwardingTables)
	rules := slices.Concat(verify.Rules, verify.AdaptiveRules, verify.AdaptiveTableRules, capture.Rules)
	opt := report.Options{Version: Version, Topology: topology.File, Tables: tables.File, Rules: rules}
	if s.Lines != nil {
		opt.Place = capture.Place(s.Lines, false)
	}
	return report.SARIF(w, r, opt)
}

// WriteOptions are the choices of Write.
type WriteOptions struct {
	// InstallDir is the absolute path of the files in OpenSM's configuration; "" means that of
	// dir, the directory that is written.
	InstallDir string
	Lean       bool // leave the comments out of dumps
	Zstd       bool // compress dumps, which OpenSM wants unpacked
}

// Write writes a result into directory dir, all at once: a crash leaves the old directory or
// the new one. It returns the names of the files. A directory with files that Write did not
// write is refused. Write does not look at r.Verify: that is for the caller to do first.
func Write(ctx context.Context, dir string, r *compile.Result, opt WriteOptions) (names []string, err error) {
	install := opt.InstallDir
	if install == "" {
		if install, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
	}
	return outdir.Write(ctx, dir, r, outdir.Options{InstallDir: install, Lean: opt.Lean, Zstd: opt.Zstd})
}

// Path follows a packet from a CA or router port to the base LID of another port: it returns the
// ports by which the packet leaves the source and each switch. The error says where the
// packet is lost, and the ports until there are returned with it.
func Path(f *fabric.Fabric, t *lft.Tables, source, destination fabric.PortID) ([]fabric.PortID, error) {
	return t.Path(f, source, f.LID(destination), nil)
}
