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
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// folderKind is what a command takes from a folder that compile did not write: files of
// one kind tell the same in several forms.
type folderKind struct {
	name  string
	forms []dump.Form // the first that is there is read; Unknown is ibnetdiscover text
	file  func(*audit) *string
}

// folderKinds lists the kinds. Of several forms the first is the one that says most:
// opensm-subnet.lst has no LMC, opensm.fdbs does not name the owners of LIDs, and
// dump_mfts text has to be asked for as far as OpenSM's masks go.
var folderKinds = []folderKind{
	{"topology", []dump.Form{dump.Unknown, dump.SubnetList}, func(in *audit) *string { return &in.topology }},
	{"forwarding tables", []dump.Form{dump.LFTs, dump.IBRoute, dump.FDBs}, func(in *audit) *string { return &in.lfts }},
	{"SL-to-VL tables", []dump.Form{dump.SL2VL, dump.SMPQuerySL2VL, dump.IBDMSL2VL}, func(in *audit) *string { return &in.sl2vl }},
	{"path SLs", []dump.Form{dump.PathSLs, dump.IBDMPathSLs}, func(in *audit) *string { return &in.pathSL }},
	{"multicast tables", []dump.Form{dump.MCFDBs, dump.MFTs}, func(in *audit) *string { return &in.mfts }},
	{"groups", []dump.Form{dump.SAQuery}, func(in *audit) *string { return &in.groups }},
}

// isFolder says whether an argument names a folder.
func isFolder(name string) bool {
	info, err := os.Stat(name)
	return name != "-" && err == nil && info.IsDir()
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
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return inputf("%s is a file, want a directory; files are named by -t FILE --lfts FILE", dir)
	}
	said, err := in.findDumps(dir, tables)
	if err == nil {
		fmt.Fprintln(a.stderr, said)
	}
	return err
}

// findDumps finds the files of a folder that OpenSM, pull or an operator filled, by
// what is in them. Only regular files count, and of each its beginning is read. It says
// in one line which files are taken.
func (in *audit) findDumps(dir string, tables bool) (said string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", &inputError{err}
	}
	found := map[dump.Form][]string{}
	var denied []string
	for _, e := range entries {
		form, ok, err := formOf(filepath.Join(dir, e.Name()))
		switch {
		case errors.Is(err, fs.ErrPermission) && !isDumpName(e.Name()):
			denied = append(denied, e.Name())
		case err != nil:
			return "", &inputError{err}
		case ok:
			found[form] = append(found[form], e.Name())
		}
	}
	var parts []string
	for _, kind := range folderKinds {
		var names []string
		for _, form := range kind.forms {
			list := unpacked(found[form])
			if len(names) == 0 && len(list) > 1 {
				return "", inputf("%s has several files of %s in one form, %s: move all but one out of the folder, or name the files, -t FILE --lfts FILE",
					dir, kind.name, strings.Join(list, " and "))
			}
			names = append(names, list...)
		}
		if len(names) == 0 {
			continue
		}
		*kind.file(in) = filepath.Join(dir, names[0])
		part := kind.name + " " + names[0]
		if len(names) > 1 {
			part += ", not " + strings.Join(names[1:], ", ")
		}
		parts = append(parts, part)
	}
	if in.topology == "" || in.lfts == "" && tables {
		return "", missingDumps(dir, parts, denied)
	}
	in.dropUnpaired(dir)
	in.unknownSLs = in.pathSL == ""
	if n := len(denied); n > 0 {
		parts = append(parts, fmt.Sprintf("%s may not be read, %s the first", text.CountGrouped(n, "file", "files"), denied[0]))
	}
	return dir + ": " + strings.Join(parts, "; "), nil
}

// dropUnpaired leaves out path SLs without SL-to-VL tables, and groups without multicast tables,
// which say nothing by themselves. The rules of the tables that they refer to are undecided.
func (in *audit) dropUnpaired(dir string) {
	if in.sl2vl == "" && in.pathSL != "" {
		rules, _ := in.laneRules()
		in.addOmission(&omission{what: fmt.Sprintf("%s has path SLs and no SL-to-VL tables, %s or the text of smpquery sl2vl", dir, outdir.SL2VLName), rules: rules})
		in.pathSL = ""
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
		outdir.SL2VLName, outdir.PathSLsName, outdir.PairSLsName, outdir.MCFDBsName, outdir.MFTsName}, name)
}

// missingDumps says what was looked for in a folder that has not enough of it.
func missingDumps(dir string, parts, denied []string) error {
	has := "nothing of that"
	if len(parts) > 0 {
		has = "only " + strings.Join(parts, "; ")
	}
	if n := len(denied); n > 0 {
		has += fmt.Sprintf("; %s may not be read, %s the first", text.CountGrouped(n, "file", "files"), denied[0])
	}
	return inputf("%s is no directory that compile wrote: it has no %s. As a folder of dumps it needs a topology (ibnetdiscover text or %s) and forwarding tables (%s, dump_lfts text or %s); it has %s",
		dir, outdir.ManifestName, outdir.SubnetListName, outdir.LFTsName, outdir.FDBsName, has)
}

// formOf tells the form of a file by its beginning; Unknown is ibnetdiscover text. ok is
// false for what is no regular file, for text of no form, and for compressed data of
// something else, which a file with the name of a dump has not.
func formOf(name string) (form dump.Form, ok bool, err error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false, nil // a link to nowhere is no file, either
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a FIFO by now
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	head, err := files.Head(f)
	if err != nil && isDumpName(filepath.Base(name)) {
		return 0, false, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return 0, false, nil
	}
	form = dump.Recognize(head)
	return form, form != dump.Unknown || topology.Recognize(head), nil
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
