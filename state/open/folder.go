package open

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/state"
)

// parts lists what is taken from a folder that compile did not write. If files of several forms
// tell the same, the form that comes first in sminterface/dump/form.go is read. Of several files
// in that form, the one with ibdiagnet's own name is read; if there is none, it is an error.
var parts = []struct {
	part state.Part
	file func(*Files) *string
}{
	{state.Topology, func(n *Files) *string { return &n.Topology }},
	{state.ForwardingTables, func(n *Files) *string { return &n.LFTs }},
	{state.AdaptiveTables, func(n *Files) *string { return &n.FAR }},
	{state.PLFTChoice, func(n *Files) *string { return &n.PLFT }},
	{state.SL2VLTables, func(n *Files) *string { return &n.SL2VL }},
	{state.SLsOfPaths, func(n *Files) *string { return &n.PathSLs }},
	{state.MulticastTables, func(n *Files) *string { return &n.MFTs }},
	{state.Groups, func(n *Files) *string { return &n.Groups }},
	{state.PKeyTables, func(n *Files) *string { return &n.PKeys }},
}

// Name sets the file of part p to name, and returns the
// former one. It ignores parts that Files lacks.
func (n *Files) Name(p state.Part, name string) (before string) {
	for _, x := range parts {
		if x.part == p {
			before, *x.file(n) = *x.file(n), name
		}
	}
	return before
}

// contents lists the dumps of a folder or an archive.
type contents struct {
	dir       string
	files     map[dump.Form][]string // names relative to dir
	generated map[string]bool        // by name: true if ibdiagnet wrote it
	denied    []string               // names of files without permission to read
	folders   int                    // number of subfolders, whose files are ignored
}

func newContents(dir string) *contents {
	return &contents{dir: dir, files: map[dump.Form][]string{}, generated: map[string]bool{}}
}

// add enters a file of the given form; head is its beginning.
func (c *contents) add(name string, form dump.Form, head []byte) {
	c.files[form] = append(c.files[form], name)
	c.generated[name] = form == dump.Database || ibdiagnet.IsGenerated(head)
}

// remove deletes a file from the list.
func (c *contents) remove(name string) {
	for form, names := range c.files {
		c.files[form] = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
}

// path joins dir and name, to open the file, or for messages about a member of an archive.
func (c *contents) path(name string) string { return filepath.Join(c.dir, name) }

// listFolder lists the dumps among the regular files of a folder. It reads the beginning of each.
func listFolder(dir string) (*contents, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &Error{err}
	}
	c := newContents(dir)
	for _, e := range entries {
		form, head, err := formOf(filepath.Join(dir, e.Name()))
		switch {
		case e.IsDir():
			c.folders++
		case errors.Is(err, fs.ErrPermission) && !isDumpName(e.Name()):
			c.denied = append(c.denied, e.Name())
		case err != nil:
			return nil, &Error{err}
		case form != dump.Unknown:
			c.add(e.Name(), form, head)
		}
	}
	return c, nil
}

// gather sets Files to the dumps in a folder (of OpenSM, pull or ibdiagnet, or filled
// by hand) or archive. It recognizes them by content. said is a line that lists them.
func (in *Input) gather(dir string, tables bool) (said string, err error) {
	c, err := in.list(dir)
	if err != nil {
		return "", err
	}
	var taken []string
	for i, kind := range parts {
		names, err := c.choose(kind.part)
		if err == nil && i == 0 && len(names) > 0 {
			names, err = in.preferWhole(c, names)
		}
		if err != nil {
			return "", err
		}
		if len(names) == 0 || !in.TakeAdaptive && (kind.part == state.AdaptiveTables || kind.part == state.PLFTChoice) ||
			kind.part == state.PKeyTables && (!in.TakePKeys || in.PKeys != "" || in.databases[in.Topology].hasPKeys()) {
			continue
		}
		*kind.file(&in.Files) = c.path(names[0])
		part := string(kind.part) + " " + names[0]
		if len(names) > 1 {
			part += ", not " + strings.Join(names[1:], ", ")
		}
		taken = append(taken, part)
	}
	if !in.HasTables() && tables && in.TakeCables && in.run {
		in.CablesOnly, tables = true, false
		taken = append(taken, "no forwarding tables, so that only the cables are looked at")
	}
	if in.Topology == "" || !in.HasTables() && tables {
		return "", c.missingDumps(taken, in.Topology == "", tables)
	}
	in.dropUnpaired(dir)
	in.State.UnknownSLs = in.PathSLs == ""
	if n := len(c.denied); n > 0 {
		taken = append(taken, fmt.Sprintf("%s may not be read, %s the first", text.CountGrouped(n, "file", "files"), c.denied[0]))
	}
	return dir + ": " + strings.Join(taken, "; "), nil
}

// Find returns the path of the file of a form in a folder, "" if there is none.
func Find(dir string, form dump.Form) (path string, err error) {
	c, err := listFolder(dir)
	if err != nil {
		return "", err
	}
	if list := ownName(unpacked(c.files[form])); len(list) > 0 {
		path = c.path(list[0])
	}
	return path, nil
}

// choose lists the files of a kind: first the one to read. Two files in the best form are an error.
func (c *contents) choose(kind state.Part) (names []string, err error) {
	for _, form := range dump.Forms(kind) {
		list := ownName(outermost(unpacked(c.files[form])))
		if len(names) == 0 && len(list) > 1 {
			do := "move all but one out of the folder, or name the files, -t FILE --lfts FILE"
			if strings.Contains(list[0], "/") { // in an archive
				do = "unpack it, and name the folder of one run"
			}
			return nil, errorf("%s has several files of %s in one form, %s: %s", c.dir, kind, strings.Join(list, " and "), do)
		}
		names = append(names, list...)
	}
	return names, nil
}

// dropUnpaired drops path SLs without SL-to-VL tables, and groups without multicast
// tables, which are useless alone. It marks the missing tables as undecided.
func (in *Input) dropUnpaired(dir string) {
	leave := func(p state.Part, format string, args ...any) {
		in.State.Undecided = append(in.State.Undecided, state.Undecided{Part: p, Kind: fabric.Missing, Reason: fmt.Sprintf(format, args...)})
	}
	if in.SL2VL == "" && in.PathSLs != "" {
		leave(state.SL2VLTables, "%s has path SLs and no SL-to-VL tables, %s or the text of smpquery sl2vl", dir, outdir.SL2VLName)
		in.PathSLs = ""
	}
	if in.FAR == "" {
		in.PLFT = "" // it has no effect without adaptive routing
	}
	if in.MFTs == "" && in.Groups != "" {
		leave(state.MulticastTables, "%s has groups and no multicast tables, %s or the text of dump_mfts", dir, outdir.MCFDBsName)
		in.Groups = ""
	}
}

// isDumpName returns true for the name of a dump that compile,
// OpenSM or pull writes, and that a verdict may depend on.
func isDumpName(name string) bool {
	for _, suffix := range []string{outdir.ZstdSuffix, ".gz"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return slices.Contains([]string{outdir.TopologyName, outdir.SubnetListName, outdir.LFTsName, outdir.FDBsName,
		outdir.SL2VLName, outdir.PathSLsName, outdir.PairSLsName, outdir.MCFDBsName, outdir.MFTsName, PKeysName}, name)
}

// missingDumps returns the error about a folder that lacks files: what it needs and what it has.
func (c *contents) missingDumps(taken []string, topology, tables bool) error {
	const topologies = "ibnetdiscover text, db_csv, lst or net_dump of ibdiagnet, or " + outdir.SubnetListName
	has := "nothing of that"
	if len(taken) > 0 {
		has = "only " + strings.Join(taken, "; ")
	}
	if n := len(c.denied); n > 0 {
		has += fmt.Sprintf("; %s may not be read, %s the first", text.CountGrouped(n, "file", "files"), c.denied[0])
	}
	switch {
	case c.folders > 0 && topology:
		has += "; " + text.CountGrouped(c.folders, "folder in it is", "folders in it are") + " not looked into"
	case !topology:
		has += "; for its cables alone, check -t " + c.dir + " --wiring"
	}
	if !tables {
		return errorf("%s has no topology: want %s, or what compile wrote; it has %s", c.dir, topologies, has)
	}
	return errorf("%s is no directory that compile wrote: it has no %s. As a folder of dumps it needs a topology (%s) and forwarding tables (%s, dump_lfts text or %s); it has %s",
		c.dir, outdir.ManifestName, topologies, outdir.LFTsName, outdir.FDBsName, has)
}

// formOf returns the form of a file, recognized by its beginning, head. It is Unknown
// for text of no form, for archives and for what is not a regular file. Broken
// compressed data is Unknown, too, but an error if the file has the name of a dump.
func formOf(name string) (form dump.Form, head []byte, err error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return dump.Unknown, nil, nil // also for a link to nowhere
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a FIFO
	if err != nil {
		return dump.Unknown, nil, err
	}
	defer f.Close()
	head, err = files.Head(f)
	if err != nil && isDumpName(filepath.Base(name)) {
		return dump.Unknown, nil, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil || files.IsArchive(head) {
		return dump.Unknown, nil, nil
	}
	return dump.Recognize(head), head, nil
}

// outermost keeps those names of an archive's files
// that have the fewest folders: files in subfolders do
// not count, as in a folder.
func outermost(names []string) []string {
	depth := func(name string) int { return strings.Count(name, "/") }
	if len(names) == 0 {
		return nil
	}
	least := depth(slices.MinFunc(names, func(a, b string) int { return depth(a) - depth(b) }))
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return depth(name) > least })
}

// ownName keeps only the name that ibdiagnet itself gives, ibdiagnet2.FORM, if
// exactly one name is like that. It drops copies such as ibdiagnet2.db_csv.old.
func ownName(names []string) []string {
	own := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		form, ok := strings.CutPrefix(filepath.Base(name), "ibdiagnet2.")
		return !ok || strings.Contains(form, ".")
	})
	if len(own) == 1 {
		return own
	}
	return names
}

// unpacked drops names of compressed files if the uncompressed file is in the list, too.
func unpacked(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		for _, suffix := range []string{outdir.ZstdSuffix, ".gz"} {
			if plain, ok := strings.CutSuffix(name, suffix); ok && slices.Contains(names, plain) {
				return true
			}
		}
		return false
	})
}
