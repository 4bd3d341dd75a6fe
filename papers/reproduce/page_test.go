package reproduce

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNumbers has docs/reproduction.md resolve what it and this package call by number:
// errata, and claims by their rows.
func TestNumbers(t *testing.T) {
	page, err := os.ReadFile("../../docs/reproduction.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	text := string(page)
	for _, name := range sources {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(source)
	}
	numbers := map[string]bool{}
	for _, n := range regexp.MustCompile(`\bE-[XSNM][0-9]+\b`).FindAllString(text, -1) {
		numbers[n] = true
	}
	if len(numbers) < 10 {
		t.Fatal(numbers)
	}
	for n := range numbers {
		if !strings.Contains(string(page), `<a id="`+strings.ToLower(n)+`"></a>**`+n+"** ") {
			t.Errorf("the page does not say what %s is", n)
		}
	}
	for _, p := range Papers {
		_, table, _ := strings.Cut(string(page), "<!-- verdicts of "+p.ID+" -->")
		table, _, _ = strings.Cut(table, "<!-- end of verdicts -->")
		for _, c := range p.Claims {
			if !strings.Contains(table, "\n| "+c.Spec+" | ") {
				t.Errorf("%s: no row of %s", p.ID, c.Spec)
			}
		}
	}
}
