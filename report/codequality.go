package report

import (
	"cmp"
	"io"
	"path/filepath"

	"github.com/ibweave/ibweave/verify"
)

var codeQualitySeverity = map[verify.Severity]string{verify.Note: "info", verify.Warning: "minor", verify.Error: "critical"}

// CodeQuality prints a result as a report of GitLab's Code Quality (Code Quality report
// format, docs.gitlab.com), a subset of the Code Climate specification. Errors are critical,
// warnings minor and notes info; what is undecided is major. Findings that are waived are left out, since the form
// has no way to say so. There are at most as many as in SARIF, the gravest first.
func CodeQuality(w io.Writer, r *verify.Result, opt Options) error {
	list := []object{}
	add := func(message, rule, print, severity, file string, line int) {
		list = append(list, object{
			"description": message, "check_name": rule, "fingerprint": print, "severity": severity,
			"location": object{"path": filepath.ToSlash(filepath.Clean(file)), "lines": object{"begin": line}},
		})
	}
	for _, u := range r.Undecided {
		add(undecided(u), u.Rule, undecidedPrint(u), "major", opt.subject(), 1)
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Waiver != nil {
			continue
		}
		if len(list) == maxResults {
			break
		}
		file, line := opt.place(f)
		add(f.Message, f.Rule, cmp.Or(f.Fingerprint, fingerprint(f)), codeQualitySeverity[f.Severity], file, line)
	}
	return viewerJSON(w, list)
}
