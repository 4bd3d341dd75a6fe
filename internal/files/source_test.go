package files

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// opens are the functions that open, read or replace files without the care of this room.
var opens = map[string][]string{
	"os":      {"Create", "CreateTemp", "WriteFile", "OpenFile", "Open", "ReadFile", "Rename", "Truncate", "OpenRoot", "CopyFS"},
	"io":      {"ReadAll"},
	"unix":    {"Open", "Openat", "Openat2", "Creat", "Rename", "Renameat", "Renameat2"},
	"syscall": {"Open", "Openat", "Creat", "Rename", "Renameat"},
	"ioutil":  {"ReadFile", "WriteFile", "ReadAll", "TempFile"},
}

// theirOwn are the files and folders that use them, and why they may.
var theirOwn = map[string]string{
	"internal/files/":                               "this room",
	"internal/built/":                               "programs for tests, in a private folder",
	"compile/outdir/directory.go":                   "makes a directory of its own and exchanges it with the old one",
	"compile/outdir/system_linux.go":                "locks that directory",
	"compile/outdir/system_other.go":                "opens the null device",
	"cmd/ibweave/read.go:readRaw":                   "opens what files.ReadAll reads",
	"state/open/folder.go:formOf":                   "opens a regular file for files.Head",
	"papers/cmd/ibweave-papers/schedule.go:readRaw": "opens what files.ReadAll reads",
	"fabric/topology/topology.go:Read":              "reads what its caller has opened and limits",
	"sminterface/ibsim/":                            "files in a private folder, for ibsim and OpenSM",
	"sminterface/rehearse/explain.go":               "reads line by line what it wrote or copied",
	"sminterface/rehearse/plugin.go":                "files in a private folder, and the log of its own OpenSM",
	"sminterface/umad/system_linux.go":              "a device",
	"cmd/ibweave-opensm/plugin/":                    "inside OpenSM; what operators name there goes through ReadRegular",
	"scripts/":                                      "measurements, in folders of their own",
}

// Files are opened, read and written by this room, or in the places that say why not: a
// new writer that replaces a device, or a reader without a limit, fails here.
func TestNoOtherRoomOpensFiles(t *testing.T) {
	const root = "../.."
	seen := 0
	short.Check(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || strings.HasPrefix(name, ".") && name != ".."):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		path, err = filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			where := path
			if f, ok := decl.(*ast.FuncDecl); ok {
				where += ":" + f.Name.Name
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if of, ok := s.X.(*ast.Ident); ok && slices.Contains(opens[of.Name], s.Sel.Name) && !allowed(where) {
					t.Errorf("%s: %s.%s; want files.Write, files.ReadRegular or files.ReadAll, or a line in theirOwn that says why not", where, of.Name, s.Sel.Name)
				}
				return true
			})
		}
		return nil
	}))
	if seen < 200 {
		t.Errorf("only %d files of source", seen)
	}
}

// allowed returns true if a function, as file:name, is in theirOwn: itself, its file or its
// folder.
func allowed(where string) bool {
	for name := range theirOwn {
		if where == name || strings.HasPrefix(where, name+":") || strings.HasSuffix(name, "/") && strings.HasPrefix(where, name) {
			return true
		}
	}
	return false
}
