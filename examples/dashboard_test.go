package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// TestDashboard finds the metrics of the dashboard's queries in what the program writes, and
// Prometheus understands the queries.
func TestDashboard(t *testing.T) {
	short.NeedPrograms(t)
	t.Parallel()
	text := short.Must(os.ReadFile("metrics/dashboard.json"))(t)
	var dashboard struct {
		Panels []struct {
			Title   string
			GridPos struct{ X, W int }
			Targets []struct{ Expr string }
		}
	}
	short.Check(t, json.Unmarshal(text, &dashboard))
	dir := t.TempDir()
	metrics, _ := runShell(t, dir, "-c", "ibweave gen fattree --radix 4 --levels 2 | ibweave compile -t - -e updn -o tables >log 2>&1; ibweave check tables --format prometheus; ibweave drift tables --live tables/opensm-lfts.dump --format prometheus")
	rules := "groups:\n- name: dashboard\n  rules:\n"
	queries := 0
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q has no query, or is beyond the right edge", p.Title)
		}
		for _, q := range p.Targets {
			queries++
			expr := strings.ReplaceAll(q.Expr, "$instance", ".*")
			rules += "  - alert: Query\n    expr: '" + expr + "'\n    labels: {panel: '" + p.Title + q.Expr + "'}\n"
			for _, name := range regexp.MustCompile(`ibweave_\w+`).FindAllString(expr, -1) {
				short.Contains(t, metrics, "# TYPE "+name+" gauge\n", "panel", p.Title, "asks for", name, "which nothing writes")
			}
		}
	}
	file := filepath.Join(dir, "rules.yml")
	short.Check(t, os.WriteFile(file, []byte(rules), 0o666))
	if queries < 8 {
		t.Errorf("%d queries", queries)
	}
	if !short.All() {
		return
	}
	if out, err := exec.Command("promtool", "check", "rules", "--lint=none", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v: %s", err, out)
	}
}
