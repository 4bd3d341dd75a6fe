package cli

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/verify"
)

// OutputForm is the flag --format of commands that print text or JSON.
type OutputForm struct {
	Format  string
	Metrics string // name of the command in metrics; "" if it writes none
}

// Define defines --format with the forms text and json; help names the output what.
func (o *OutputForm) Define(flags *pflag.FlagSet, what string) {
	o.Format = "text"
	WordFlag(flags, &o.Format, "format", "`FORM` of the "+what+": text or json", "text", "json")
}

// DefineMetrics defines --format with the forms text, json and prometheus.
func (o *OutputForm) DefineMetrics(flags *pflag.FlagSet, command string) {
	o.Format, o.Metrics = "text", command
	WordFlag(flags, &o.Format, "format", "`FORM` of the output: text, json, or prometheus: metrics as node_exporter's textfile collector reads them", "text", "json", "prometheus")
}

// IsMetrics returns true with --format prometheus.
func (o *OutputForm) IsMetrics() bool { return o.Format == "prometheus" }

// IsJSON returns true with --format json.
func (o *OutputForm) IsJSON() bool { return o.Format == "json" }

// Print writes document as JSON, or the text that write makes, in one call of w.Write.
func (o *OutputForm) Print(w io.Writer, document any, write func(b *text.Sheet)) error {
	if o.IsJSON() {
		return report.JSON(w, document)
	}
	var b text.Sheet
	write(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// Threshold is the flag --fail-on.
type Threshold struct{ failOn string }

// Define defines --fail-on; text more ends its usage.
func (t *Threshold) Define(flags *pflag.FlagSet, more string) {
	t.failOn = "error"
	WordFlag(flags, &t.failOn, "fail-on", "exit with 1 for findings from `SEVERITY` on: error, warning, note or never"+more, "error", "warning", "note", "never")
}

// Never returns true with --fail-on never.
func (t *Threshold) Never() bool { return t.failOn == "never" }

// At returns the least severity that fails; it has no meaning with --fail-on never.
func (t *Threshold) At() (s verify.Severity) {
	_ = s.UnmarshalText([]byte(t.failOn)) // never is no severity: s stays 0
	return s
}

// CheckWorst returns ErrFindings if the worst finding is at or above the threshold.
func (t *Threshold) CheckWorst(worst verify.Severity) error {
	return FindingsIf(!t.Never() && worst >= t.At())
}

// FindingsIf returns ErrFindings if something was found.
func FindingsIf(found bool) error {
	if found {
		return ErrFindings
	}
	return nil
}
