package ibweave_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// supported are the packages whose users may rely on them.
var supported = []string{".", "fabric", "lft", "mft", "state", "verify", "compile"}

// Each package has a comment, whose first sentence says what the package does and whose
// first paragraph says whether it is supported.
func TestPackageComments(t *testing.T) {
	comments := map[string]string{} // by folder; "" for a package without
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != "."):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err == nil {
			comments[filepath.Dir(path)] += comment(f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(comments) < 30 {
		t.Errorf("%d packages; this test looks at the wrong folder", len(comments))
	}
	for dir, text := range comments {
		first, _, _ := strings.Cut(text, "\n\n")
		first = strings.Join(strings.Fields(first), " ")
		want := "no promise to other modules"
		switch {
		case slices.Contains(supported, dir):
			want = "supported"
		case strings.HasPrefix(first, "Command "):
			want = "" // no package imports it
		}
		if !strings.HasPrefix(first, "Package ") && !strings.HasPrefix(first, "Command ") || !strings.Contains(first, want) {
			t.Errorf("%s: want a comment that says what the package does, and %q; it begins with %q", dir, want, first)
		}
	}
}

func comment(f *ast.File) string {
	if f.Doc == nil {
		return ""
	}
	return f.Doc.Text()
}
