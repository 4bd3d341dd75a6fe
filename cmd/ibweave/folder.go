package main

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
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibdiagnet"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// folderKind is what a command takes from a folder that compile did not write: files of
// one kind tell the same in several forms, of which the first that is there is read.
type folderKind struct {
	kind state.Part
	file func(*audit) *string
}

// folderKinds lists the kinds.
var folderKinds = []folderKind{
	{state.Topology, func(in *audit) *string { return &in.topology }},
	{state.ForwardingTables, func(in *audit) *string { return &in.lfts }},
	{state.AdaptiveTables, func(in *audit) *string { return &in.far }},
	{state.PLFTChoice, func(in *audit) *string { return &in.plft }},
	{state.SL2VLTables, func(in *audit) *string { return &in.sl2vl }},
	{state.SLsOfPaths, func(in *audit) *string { return &in.pathSL }},
	{state.MulticastTables, func(in *audit) *string { return &in.mfts }},
	{state.Groups, func(in *audit) *string { return &in.groups }},
	{state.PKeyTables, func(in *audit) *string { return &in.pkeys }},
}

// resolve finds the files of a directory that compile wrote, else those of a folder of
// dumps, and says which it takes of these. A folder must have a topology, and with
// tables set forwarding tables.
func (a *app) resolve(in *audit, dir string, tables bool) error {
	err := in.findCompiled(dir)
	if err == nil {
		return nil
	}
	if _, there := os.Lstat(filepath.Join(dir, outdir.ManifestName)); there == nil {
		return err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() && !files.Archive(dir) {
		return inputf("%s is a file, want a directory; files are named by -t FILE --lfts FILE", dir)
	}
	said, err := a.gather(in, dir, tables)
	if err == nil {
		fmt.Fprintln(a.stderr, said)
	}
	return err
}

// contents is what a folder or an archive has of dumps.
type contents struct {
	dir       string
	files     map[dump.Form][]string // names in dir
	generated map[string]bool        // by name: ibdiagnet wrote it
	denied    []string               // names that may not be read
	folders   int                    // in it, of which the files do not count
}

func newContents(dir string) *contents {
	return &contents{dir: dir, files: map[dump.Form][]string{}, generated: map[string]bool{}}
}

// add enters a file of a form by its beginning.
func (c *contents) add(name string, form dump.Form, head []byte) {
	c.files[form] = append(c.files[form], name)
	c.generated[name] = form == dump.Database || ibdiagnet.IsGenerated(head)
}

// remove takes a file out again.
func (c *contents) remove(name string) {
	for form, names := range c.files {
		c.files[form] = slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
}

// path is the name of a file for messages, and to open it where dir is a folder.
func (c *contents) path(name string) string { return filepath.Join(c.dir, name) }

// listFolder finds the dumps of a folder. Only regular files count, and of each its
// beginning is read.
func listFolder(dir string) (*contents, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &inputError{err}
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
			return nil, &inputError{err}
		case form != dump.Unknown:
			c.add(e.Name(), form, head)
		}
	}
	return c, nil
}

// gather finds the files of a folder that OpenSM, pull or ibdiagnet wrote or that was
// filled by hand, or of its archive, by what is in them. It says in one line which files are taken.
func (a *app) gather(in *audit, dir string, tables bool) (said string, err error) {
	c, err := a.list(in, dir)
	if err != nil {
		return "", err
	}
	var parts []string
	for i, kind := range folderKinds {
		names, err := c.choose(kind.kind)
		if err == nil && i == 0 && len(names) > 0 {
			names, err = a.preferWhole(in, c, names)
		}
		if err != nil {
			return "", err
		}
		if len(names) == 0 || !in.adaptiveToo && (kind.kind == state.AdaptiveTables || kind.kind == state.PLFTChoice) ||
			kind.kind == state.PKeyTables && (!in.pkeysToo || in.pkeys != "" || in.databases[in.topology].hasPKeys()) {
			continue
		}
		*kind.file(in) = c.path(names[0])
		part := string(kind.kind) + " " + names[0]
		if len(names) > 1 {
			part += ", not " + strings.Join(names[1:], ", ")
		}
		parts = append(parts, part)
	}
	if !in.hasTables() && tables && in.cablesDo && in.ofIbdiagnet {
		in.wiring, tables = true, false
		parts = append(parts, "no forwarding tables, so that only the cables are looked at")
	}
	if in.topology == "" || !in.hasTables() && tables {
		return "", c.missingDumps(parts, in.topology == "", tables)
	}
	in.dropUnpaired(dir)
	in.unknownSLs = in.pathSL == ""
	if n := len(c.denied); n > 0 {
		parts = append(parts, fmt.Sprintf("%s may not be read, %s the first", text.CountGrouped(n, "file", "files"), c.denied[0]))
	}
	return dir + ": " + strings.Join(parts, "; "), nil
}

// choose lists the files of a kind, the one to read first.
func (c *contents) choose(kind state.Part) (names []string, err error) {
	for _, form := range dump.Forms(kind) {
		list := ownName(outermost(unpacked(c.files[form])))
		if len(names) == 0 && len(list) > 1 {
			do := "move all but one out of the folder, or name the files, -t FILE --lfts FILE"
			if strings.Contains(list[0], "/") { // of an archive
				do = "unpack it, and name the folder of one run"
			}
			return nil, inputf("%s has several files of %s in one form, %s: %s", c.dir, kind, strings.Join(list, " and "), do)
		}
		names = append(names, list...)
	}
	return names, nil
}

// dropUnpaired leaves out path SLs without SL-to-VL tables, and groups without multicast tables,
// which say nothing by themselves. The rules of the tables that they refer to are undecided.
func (in *audit) dropUnpaired(dir string) {
	if in.sl2vl == "" && in.pathSL != "" {
		rules, _ := in.laneRules()
		in.addOmission(&omission{what: fmt.Sprintf("%s has path SLs and no SL-to-VL tables, %s or the text of smpquery sl2vl", dir, outdir.SL2VLName), rules: rules})
		in.pathSL = ""
	}
	if in.far == "" {
		in.plft = "" // it says nothing by itself
	}
	if in.mfts == "" && in.groups != "" {
		in.addOmission(&omission{what: fmt.Sprintf("%s has groups and no multicast tables, %s or the text of dump_mfts", dir, outdir.MCFDBsName), rules: verify.MulticastRules})
		in.groups = ""
	}
}

// isDumpName says whether a file has the name of a dump that compile, OpenSM or pull
// writes and that a verdict may rest on.
func isDumpName(name string) bool {
	for _, suffix := range []string{outdir.ZstdSuffix, ".gz"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return slices.Contains([]string{outdir.TopologyName, outdir.SubnetListName, outdir.LFTsName, outdir.FDBsName,
		outdir.SL2VLName, outdir.PathSLsName, outdir.PairSLsName, outdir.MCFDBsName, outdir.MFTsName, pkeysName}, name)
}

// missingDumps says what was looked for in a folder that has not enough of it, and what it has.
func (c *contents) missingDumps(parts []string, topology, tables bool) error {
	const topologies = "ibnetdiscover text, db_csv or lst of ibdiagnet, or " + outdir.SubnetListName
	has := "nothing of that"
	if len(parts) > 0 {
		has = "only " + strings.Join(parts, "; ")
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
		return inputf("%s has no topology: want %s, or what compile wrote; it has %s", c.dir, topologies, has)
	}
	return inputf("%s is no directory that compile wrote: it has no %s. As a folder of dumps it needs a topology (%s) and forwarding tables (%s, dump_lfts text or %s); it has %s",
		c.dir, outdir.ManifestName, topologies, outdir.LFTsName, outdir.FDBsName, has)
}

// formOf tells the form of a file by its beginning, which it returns. It is Unknown for what
// is no regular file, for text of no form, and for an archive, and for compressed data of something
// else, which a file with the name of a dump has not.
func formOf(name string) (form dump.Form, head []byte, err error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return dump.Unknown, nil, nil // a link to nowhere is no file, either
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a FIFO by now
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

// outermost leaves of the names in an archive those in the fewest folders, as of a folder only
// its own files count.
func outermost(names []string) []string {
	depth := func(name string) int { return strings.Count(name, "/") }
	if len(names) == 0 {
		return nil
	}
	least := depth(slices.MinFunc(names, func(a, b string) int { return depth(a) - depth(b) }))
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return depth(name) > least })
}

// ownName leaves of several names the one that ibdiagnet gives a file, without copies such
// as ibdiagnet2.db_csv.old.
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

// unpacked leaves out of a list of names those that are another one, compressed.
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
