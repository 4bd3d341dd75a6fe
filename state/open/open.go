// Package open reads a state.State from what operators have: a directory that compile wrote, a
// folder of dumps, a run of ibdiagnet, an archive of one of these, or named files. The table at the
// head of folder.go tells which files of a folder are taken. It makes no promise to other modules.
package open

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/state"
)

// Files names the file of each part: "" for none.
type Files struct {
	Topology    string
	LFTs        string
	FAR         string // adaptive routing
	PLFT        string // which private LFT a packet takes
	SL2VL       string
	PathSLs     string
	MFTs        string
	Groups      string
	PKeys       string
	Certificate string
}

// HasTables returns true if there are forwarding tables, static or adaptive.
func (n *Files) HasTables() bool { return n.LFTs != "" || n.FAR != "" }

// OnlyTopology returns true if a topology is named and no tables, SLs or groups are.
func (n *Files) OnlyTopology() bool {
	return n.Topology != "" && !n.HasTables() && n.PLFT+n.SL2VL+n.PathSLs+n.MFTs+n.Groups == ""
}

// PKeysName is the file of P_Key tables in a folder that pull wrote.
const PKeysName = "pkeys.dump"

// Options are choices that a caller can make for a reader.
type Options struct {
	// Lenient skips broken records of the input, and lists them as Problems.
	Lenient bool
	// Strict refuses a topology with text that its tool never prints.
	Strict bool
	// Findings keeps what a checker reports: entries to ports that a
	// switch does not have, and members of groups that are no end ports.
	Findings bool
	// TakeAdaptive and TakePKeys take adaptive routing and P_Key tables from a folder, too.
	TakeAdaptive, TakePKeys bool
	// TakeCables accepts a run of ibdiagnet without forwarding tables, to check only its cables.
	TakeCables bool
	// Sums, if not nil, gets the SHA-256 of each file that is read, by path, in hexadecimal.
	Sums map[string]string
	// TakeLines keeps the lines of nodes, ports and tables in the State.
	TakeLines bool
	Host
}

// Host has functions by which a program takes part in reading. Each may be nil.
type Host struct {
	// Read reads a whole file as it is, or standard input for "-".
	Read func(name string) ([]byte, error)
	// Rename returns the fabric that was read with other names and kinds of nodes.
	Rename func(*fabric.Fabric) (*fabric.Fabric, error)
	// Stage announces a stage of work; end is called when it is done.
	Stage func(name string) (end func())
	// Tell is called with the problems of a file that was read.
	Tell func(f *fabric.Fabric, problems []fabric.Problem)
	// Say is called with a line that lists the files taken from a folder.
	Say func(line string)
}

// Input reads a State part by part, so that a command reads
// only what it needs. State has the parts read so far.
type Input struct {
	Files
	Options
	State state.State
	// Compiled is the directory that compile wrote; nil for files from elsewhere.
	Compiled *outdir.Directory
	// Database is the db_csv that the fabric came from; nil for none.
	Database *ibdiagnet.Database
	// CablesOnly is true if TakeCables accepted a run without tables.
	CablesOnly bool

	loaded    map[string][]byte       // by path: text that need not be read again
	databases map[string]readDatabase // by path
	run       bool                    // ibdiagnet wrote the topology
	beside    []string                // other topology files of the same run
	cut       map[string]bool         // by path: files that lack their last line
}

// Error reports input that cannot be opened or does not
// belong together; errors in a text are *fabric.ParseError.
type Error struct{ error }

func (e *Error) Unwrap() error { return e.error }

// NewError makes an Error of err.
func NewError(err error) *Error { return &Error{err} }

func errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

// notALine wraps err in an Error if it names no line of a text.
func notALine(err error) error {
	if _, ok := errors.AsType[*fabric.ParseError](err); ok || err == nil {
		return err
	}
	return &Error{err}
}

// maxInput is the greatest size of an input, in bytes of text.
const maxInput = 64 << 30

func (in *Input) stage(name string) (end func()) {
	if in.Stage == nil {
		return func() {}
	}
	return in.Stage(name)
}

// tell adds problems to the State, and calls the host's Tell.
func (in *Input) tell(f *fabric.Fabric, problems ...fabric.Problem) {
	in.State.Problems = append(in.State.Problems, problems...)
	if in.Tell != nil && len(problems) > 0 {
		in.Tell(f, problems)
	}
}

// leave adds to State.Undecided what the problems of a part's file leave undecided.
func (in *Input) leave(p state.Part, problems []fabric.Problem) {
	in.State.Undecided = append(in.State.Undecided, state.UndecidedBy(p, problems)...)
}

// Load stores the text of a file, so that the file is not read.
func (in *Input) Load(name string, text []byte) {
	if in.loaded == nil {
		in.loaded = map[string][]byte{}
	}
	in.loaded[name] = text
}

// Loaded returns the stored text of a file, false if there is none.
func (in *Input) Loaded(name string) (text []byte, ok bool) {
	text, ok = in.loaded[name]
	return text, ok
}

// ReadFile reads a file, and decodes zstd, gzip or UTF-16. It reports a problem if
// the file lacks its end, or has changed since compile wrote it into its directory.
func (in *Input) ReadFile(name string) ([]byte, error) {
	if text, ok := in.loaded[name]; ok {
		return text, in.checkEnd(name, text)
	}
	raw, text, err := in.readText(name)
	if err != nil {
		return nil, err
	}
	if err := in.checkEnd(name, text); err != nil {
		return nil, err
	}
	hash := func() string { return Sum(raw) }
	if in.Sums != nil {
		in.Sums[name] = hash()
	}
	if in.Compiled != nil && in.Compiled.Read(name, hash) {
		in.tell(in.State.Fabric, fabric.Problem{Kind: outdir.ChangedFile, File: name, Count: 1,
			Message: "warning: changed since it was compiled (" + outdir.ManifestName + " has another SHA-256)"})
	}
	return text, nil
}

// Text reads a file, and decodes zstd, gzip or UTF-16, without the checks of ReadFile.
func (in *Input) Text(name string) ([]byte, error) {
	_, text, err := in.readText(name)
	return text, err
}

// readText reads a file: raw is its content, text has zstd, gzip or UTF-16 decoded.
func (in *Input) readText(name string) (raw, text []byte, err error) {
	read := in.Read
	if read == nil {
		read = func(name string) ([]byte, error) { return files.ReadRegular(name, maxInput) }
	}
	if raw, err = read(name); err != nil {
		return nil, nil, err
	}
	if text, err = files.Decompress(name, raw, Limit); err != nil {
		return nil, nil, &Error{err}
	}
	return raw, in.withoutMark(text), nil
}

// Sum is the SHA-256 of a text in hexadecimal.
func Sum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// withoutMark removes a byte order mark; with Strict it leaves it, for the reader to refuse.
func (in *Input) withoutMark(text []byte) []byte {
	if in.Strict {
		return text
	}
	return bytes.TrimPrefix(text, []byte("\ufeff"))
}

// The greatest inputs of each kind, in bytes of text. For 4,000 switches
// and 48,000 LIDs, forwarding tables take 14 GB and a topology 100 MB.
const (
	maxTopology = 1 << 30
	maxOther    = 512 << 20 // JSON, YAML, certificates, traces
)

// Limit returns the greatest size of an input that begins with start.
// It refuses data that is no text, such as that of endless devices.
func Limit(start []byte) (int64, error) {
	switch form := dump.Recognize(start); {
	case bytes.IndexByte(start, 0) >= 0:
		return 0, errors.New("no text: it has zero bytes; want a text form, or one that zstd or gzip compressed")
	case form.Info().Kind == state.Topology:
		return maxTopology, nil
	case form == dump.Unknown:
		return maxOther, nil
	}
	return maxInput, nil
}

// source records the file that a part was read from.
func (in *Input) source(p state.Part, name string, text []byte) {
	in.State.Sources = append(in.State.Sources, state.Source{Part: p, File: name, Form: dump.Recognize(text).String(), SHA256: in.Sums[name]})
}

// FindIn finds the files of a directory that compile wrote, or else the
// dumps in a folder or archive, which it lists to the host in one line. A
// folder must have a topology and, if tables is set, forwarding tables.
func (in *Input) FindIn(dir string, tables bool) error {
	err := in.Directory(dir)
	if err == nil {
		return nil
	}
	if _, there := os.Lstat(filepath.Join(dir, outdir.ManifestName)); there == nil {
		return err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() && !files.Archive(dir) {
		return errorf("%s is a file, want a directory; files are named by -t FILE --lfts FILE", dir)
	}
	said, err := in.gather(dir, tables)
	if err == nil && in.Say != nil {
		in.Say(said)
	}
	return err
}

// Directory finds the files of a directory that compile wrote.
func (in *Input) Directory(dir string) error {
	d, err := outdir.Open(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errorf("%s is no directory that compile wrote: it has no %s", dir, outdir.ManifestName)
		}
		return &Error{err}
	}
	in.Compiled, in.State.Engine, in.Topology = d, d.Engine, filepath.Join(dir, outdir.TopologyName)
	in.LFTs, _ = d.Find(outdir.LFTsName)
	for name, at := range map[string]*string{
		outdir.SL2VLName:       &in.SL2VL,
		outdir.PathSLsName:     &in.PathSLs,
		outdir.MCFDBsName:      &in.MFTs,
		outdir.GroupsName:      &in.Groups,
		outdir.CertificateName: &in.Certificate,
		outdir.FARName:         &in.FAR,
	} {
		if at == &in.FAR && !in.TakeAdaptive {
			continue
		}
		if path, listed := d.Find(name); listed && *at == "" {
			*at = path
		}
	}
	return nil
}

// Folder returns true for the name of a directory or of an archive.
func Folder(name string) bool {
	if name == "-" {
		return false
	}
	info, err := os.Stat(name)
	return err == nil && info.IsDir() || files.Archive(name)
}

// File returns true for standard input and for the name of a file that is no archive.
func File(name string) bool {
	info, err := os.Stat(name)
	return name == "-" || err == nil && !info.IsDir() && !files.Archive(name)
}

// Database returns true for the name of a regular file with a db_csv.
func Database(name string) bool {
	form, _, err := formOf(name)
	return name != "-" && err == nil && form == dump.Database
}
