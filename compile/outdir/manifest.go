package outdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// Version is the release of ibweave, which manifests name.
const Version = "0.1.0"

// ManifestName is the file of a compiled directory that lists the others.
const ManifestName = "manifest.json"

// maxManifest bounds a manifest in bytes; one with all options has some thousands.
const maxManifest = 4 << 20

// Manifest describes how a compiled directory was made, and lists its files.
type Manifest struct {
	Version string         `json:"version"` // of ibweave
	Engine  string         `json:"engine"`
	Options map[string]any `json:"options"` // by flag name; only what changes the result
	// Previous is the SHA-256 of the manifest of the directory whose tables were kept as
	// far as possible, "" for none.
	Previous string `json:"previous,omitempty"`
	// VirtualLIDs maps each LID of a virtual port to the GUID of the physical port that it
	// is on. No other file has them.
	VirtualLIDs map[fabric.LID]fabric.GUID `json:"virtual_lids,omitempty"`
	// Files maps the name of each file to its SHA-256 in hexadecimal.
	Files map[string]string `json:"files"`
}

// engineName matches names of engines, also of other versions. It is strict because the
// name goes into OpenSM's options.
var engineName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// ReadManifest reads the manifest of a compiled directory.
func ReadManifest(dir string) (*Manifest, error) {
	name := filepath.Join(dir, ManifestName)
	data, err := files.ReadRegular(name, maxManifest)
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !engineName.MatchString(m.Engine) {
		return nil, fmt.Errorf("%s: engine %q: want a name of small letters, digits and dashes, like updn", name, m.Engine)
	}
	return &m, nil
}

// Directory is a compiled directory with its manifest.
type Directory struct {
	*Manifest
	Path string
	read map[string]bool // names of the files read
}

// Open reads the manifest of a directory. If there is none, the error is an fs.ErrNotExist.
func Open(path string) (*Directory, error) {
	m, err := ReadManifest(path)
	if err != nil {
		return nil, err
	}
	return &Directory{Manifest: m, Path: path, read: make(map[string]bool)}, nil
}

// WithVirtualLIDs returns f, the fabric of the directory's topology text, with the LIDs of
// virtual ports. It returns an error if these LIDs do not fit f.
func (d *Directory) WithVirtualLIDs(f *fabric.Fabric) (*fabric.Fabric, error) {
	if len(d.VirtualLIDs) == 0 {
		return f, nil
	}
	ports := map[fabric.GUID]fabric.PortID{}
	f.EndPorts(func(p fabric.PortID) { ports[f.PortGUID(p)] = p })
	owner := map[fabric.LID]fabric.PortID{}
	for l, guid := range d.VirtualLIDs {
		p, known := ports[guid]
		if !known {
			return nil, fmt.Errorf("%s: virtual_lids: no port GUID %s in the topology", filepath.Join(d.Path, ManifestName), guid)
		}
		owner[l] = p
	}
	g, err := f.WithVirtualLIDs(owner)
	if err != nil {
		return nil, fmt.Errorf("%s: virtual_lids: %w", filepath.Join(d.Path, ManifestName), err)
	}
	return g, nil
}

// Find returns the path of a file, and true if the manifest lists
// it. If only the unpacked form of a compressed dump is left, it
// returns that path; the manifest has no sum of it.
func (d *Directory) Find(form string) (path string, listed bool) {
	path = filepath.Join(d.Path, form)
	if _, listed = d.Files[form]; listed {
		return path, true
	}
	if _, listed = d.Files[form+ZstdSuffix]; listed {
		if _, err := os.Stat(path + ZstdSuffix); !errors.Is(err, fs.ErrNotExist) {
			path += ZstdSuffix
		}
	}
	return path, listed
}

// Read notes that a file was read. It returns true if the file differs from the manifest:
// hash returns its SHA-256 in hexadecimal.
func (d *Directory) Read(path string, hash func() string) (changed bool) {
	name := filepath.Base(path)
	if path != filepath.Join(d.Path, name) {
		return false // it is of another directory
	}
	d.read[name] = true
	sum, listed := d.Files[name]
	return listed && sum != hash()
}

// ChangedFile is the kind of a Problem about a file that was changed after its compilation.
const ChangedFile fabric.ProblemKind = verify.FileChanged

// Changed returns a finding about a changed file of a directory.
func Changed(severity verify.Severity, format string, args ...any) verify.Finding {
	return verify.Finding{Rule: verify.FileChanged, Severity: severity, Message: fmt.Sprintf(format, args...), Count: 1}
}

// CheckRest checks the files that Read was not called for, and unpacked dumps, against the
// manifest's sums. It does not hold files in memory.
func (d *Directory) CheckRest(ctx context.Context) (findings []verify.Finding, undecided []verify.Undecided, err error) {
	names := slices.Sorted(maps.Keys(d.Files))
	found := make([]verify.Result, len(names))
	if err := par.ForEach(ctx, 0, len(names), func(i int) error { return d.checkFile(names[i], &found[i]) }); err != nil {
		return nil, nil, err
	}
	for i := range found {
		findings = append(findings, found[i].Findings...)
		undecided = append(undecided, found[i].Undecided...)
	}
	return findings, undecided, nil
}

// checkFile compares a file, and its unpacked form if there is one, with its sum.
func (d *Directory) checkFile(name string, to *verify.Result) error {
	path, want := filepath.Join(d.Path, name), d.Files[name]
	find := func(severity verify.Severity, format string, path string) {
		to.Findings = append(to.Findings, Changed(severity, format, path))
	}
	form, packed := strings.CutSuffix(name, ZstdSuffix)
	unpacked := filepath.Join(d.Path, form)
	_, err := os.Stat(unpacked)
	packed = packed && err == nil
	sum, err := want, error(nil)
	if !d.read[name] {
		sum, err = sumOf(func(w io.Writer) error { return files.CopyRegular(w, path, maxFile) })
	}
	switch {
	case err == nil && sum != want:
		find(verify.Error, "%s was changed since it was compiled, and the verdict does not cover it", path)
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case !packed:
		find(verify.Error, "%s is missing", path)
	}
	if !packed {
		return nil
	}
	sum, err = sumOf(func(w io.Writer) error { // pack it again as compile does
		return dump.WriteZstd(w, func(w io.Writer) error { return files.CopyRegular(w, unpacked, maxFile) })
	})
	switch {
	case err != nil:
		return err
	case sum == want:
	case d.Version != Version:
		to.Undecided = append(to.Undecided, verify.Undecided{Rule: verify.FileChanged,
			Reason: fmt.Sprintf("%s was unpacked, and version %s of ibweave may have packed it in another way than this one, %s", unpacked, d.Version, Version)})
	case d.read[form]:
		find(verify.Warning, "%s was changed since it was compiled and unpacked; the verdict is about what it is now", unpacked)
	default:
		find(verify.Error, "%s was changed since it was compiled and unpacked, and the verdict does not cover it", unpacked)
	}
	return nil
}

// maxFile bounds a file of a directory, in bytes.
const maxFile = 64 << 30

// sumOf returns the SHA-256 in hexadecimal of the bytes that write writes.
func sumOf(write func(w io.Writer) error) (string, error) {
	h := sha256.New()
	err := write(h)
	return hex.EncodeToString(h.Sum(nil)), err
}
