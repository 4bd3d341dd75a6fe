package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/text"
)

// Output has standard output and standard error of a program.
type Output struct {
	Stdout, Stderr io.Writer // escape what is not printable
	Exact          *Remember // standard output, not escaped
	Screen         io.Writer // standard error, not escaped
	terminal       io.Writer // standard output itself, to ask for its width
	Log            *zap.Logger
	Command        *cobra.Command // the command that runs
	results, notes *Paper         // break and colour lines, behind Stdout and Stderr
}

// NewOutput returns the output of a program on its standard output and standard error.
func NewOutput(stdout, stderr io.Writer) Output {
	exact := &Remember{To: stdout}
	results, notes := NewPaper(exact), NewPaper(stderr)
	return Output{
		Stdout: &Printable{To: results}, Stderr: &Printable{To: notes}, Exact: exact, Screen: stderr,
		terminal: stdout, results: results, notes: notes,
	}
}

// Define makes the commands of root obey --log-level,
// --log-format and --color, whose values are in level,
// format and color. check judges the rest of a command line.
func (o *Output) Define(root *cobra.Command, level, format, color *string, check func(cmd *cobra.Command) error) {
	o.Command = root
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		o.Command = cmd
		if err = o.notes.Set(o.Screen, *color); err != nil {
			return err
		}
		// Only text gets line breaks and colours, not documents for programs.
		if f := cmd.Flags().Lookup("format"); f == nil || f.Value.String() == "text" {
			if err = o.results.Set(o.terminal, *color); err != nil {
				return err
			}
		}
		if o.Log, err = OpenLog(o.Screen, *level, *format); err != nil {
			return err
		}
		return check(cmd)
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		o.Command = cmd
		return FlagError(cmd, err)
	})
	root.SetOut(o.Exact)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		// Exact keeps the error.
		_, _ = io.WriteString(cmd.OutOrStdout(), Help(cmd))
	})
}

// WriteFile writes a whole file at once, or to standard output for "-".
func (o *Output) WriteFile(name string, data []byte) error {
	write := func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
	if name == "-" {
		return write(o.Exact)
	}
	return files.Write(name, write)
}

// Run runs the command that args name, reports its error, and
// returns the exit status, which is Environment if standard
// output could not be written. (A closed pipe ends the process,
// as it does other tools.) start makes the commands; *running is
// true once the command line is valid. SIGINT or SIGTERM cancels
// the context of start; a second one ends the process at once.
func (o *Output) Run(args []string, start func(context.Context) *cobra.Command, running *bool, status func(error) int, report func(error)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := start(ctx)
	root.SetArgs(args)
	root.SetErr(o.Stderr)
	err := files.WithMaps(func() error { return root.ExecuteContext(ctx) })
	o.Stdout.(*Printable).End()
	_ = o.results.End() // Exact keeps the error
	switch {
	case err == nil:
	case !*running: // cobra's own errors have no type
		err = NewUsageError(err)
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Canceled, err)
	}
	if status := status(err); o.Exact.Err != nil && (status == Clean || status == Findings) {
		err = o.Exact.Err // the result was not written
	}
	report(err)
	o.Stderr.(*Printable).End()
	_ = o.notes.End()
	return status(err)
}

// Remember writes up to the first error, which Err keeps, and drops the
// rest. Write itself returns no error, since cobra would print or drop it.
type Remember struct {
	To  io.Writer
	Err error
}

func (r *Remember) Write(p []byte) (int, error) {
	if r.Err == nil {
		_, r.Err = r.To.Write(p)
	}
	return len(p), nil
}

// Printable escapes text and JSON for a terminal, on which no name of
// a node or file and no line of input in the text may act.
type Printable struct {
	To   io.Writer
	mu   sync.Mutex
	rest []byte // an unfinished character
	out  []byte
}

func (p *Printable) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := b
	if len(p.rest) > 0 {
		all = append(p.rest, b...)
	}
	var rest []byte
	p.out, rest = text.AppendPrintable(p.out[:0], all)
	p.rest = append([]byte(nil), rest...)
	_, err := p.To.Write(p.out)
	return len(b), err
}

// End writes an unfinished character that is left.
func (p *Printable) End() {
	if len(p.rest) > 0 {
		_, _ = io.WriteString(p.To, fabric.Printable(string(p.rest)))
		p.rest = nil
	}
}

// Printed returns a write that escapes its text or JSON as standard output does.
func Printed(write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		p := &Printable{To: w}
		defer p.End()
		return write(p)
	}
}

// WatchMemory ends the process with a message when it takes seven eighths of the
// memory that it has or may still have, before the system kills it without one.
// Files that were being written are left to the next command, as after a crash.
func WatchMemory(stderr io.Writer, program string) {
	const worthLooking = 256 << 20
	for range time.Tick(20 * time.Millisecond) {
		has := files.Resident()
		if has < worthLooking {
			continue
		}
		if all := has + files.Available(); has > all/8*7 {
			fmt.Fprintf(stderr, "%s: the input takes more than %s of memory, seven eighths of what there is; want a smaller input, or a machine with more memory\n",
				program, files.Size(all/8*7))
			os.Exit(Input)
		}
	}
}

// OpenLog returns a log to screen, as --log-level and
// --log-format say. The error names the valid values.
func OpenLog(screen io.Writer, level, format string) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	var encoder zapcore.Encoder
	switch format {
	case "console":
		encoder = zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig())
	case "json":
		encoder = zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	default:
		return nil, fmt.Errorf("--log-format %q: want console or json", format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(&Printable{To: screen})), at)), nil
}

// Revision returns the commit that was built, " (0123456789ab)",
// with ", modified" in it if the tree was; "" if it is not known.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, modified := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				modified = ", modified"
			}
		}
	}
	if commit == "" {
		return ""
	}
	return " (" + commit + modified + ")"
}
