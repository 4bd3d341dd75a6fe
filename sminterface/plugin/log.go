package plugin

import (
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogName is the file of our log in the folder of OpenSM's.
const LogName = "ibweave.log"

// openLog opens our log, which is appended to. It is a file of its own, since
// OpenSM's has a form that others read.
func openLog(c *LogConfig, dir string) (log *zap.Logger, closeLog func() error, err error) {
	name := c.File
	if name == "" {
		name = filepath.Join(dir, LogName)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return zap.NewNop(), func() error { return nil }, fmt.Errorf("log: %w", err)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(encoding)
	if c.Format == "console" {
		encoding.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(f), c.Level)), f.Close, nil
}
