package reproduce

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// TestNumbers has docs/papers resolve what sources and documents call by number: errata
// and reference values, and rules and experiments of papers where this package and the
// pages name them.
func TestNumbers(t *testing.T) {
	var pages []byte
	for _, name := range []string{"errata.md", "numbers.md"} {
		page := short.Must(os.ReadFile(filepath.Join("../../docs/papers", name)))(t)
		pages = append(pages, page...)
	}
	cited := map[string]string{} // by number: a file
	anywhere, here := regexp.MustCompile(`\b[EG]-[XSNM][0-9]+\b`), regexp.MustCompile(`\b[XSNM][0-9]+\b`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "../.." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".md" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, n := range anywhere.FindAll(source, -1) {
			cited[string(n)] = path
		}
		if dir := filepath.Base(filepath.Dir(path)); dir == "reproduce" || dir == "papers" {
			for _, n := range here.FindAll(source, -1) {
				cited[string(n)] = path
			}
		}
		return nil
	})
	if err != nil || len(cited) < 100 {
		t.Fatal(err, len(cited))
	}
	for n, path := range cited {
		if bytes.Count(pages, []byte(`<a id="`+strings.ToLower(n)+`"></a>**`+n+"** ")) != 1 {
			t.Errorf("docs/papers does not say once what %s is, which %s cites", n, path)
		}
	}
}
