package wasm

import (
	"context"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/skillhost/skill/host/executor"
	"github.com/skillhost/skill/sdk"
)

const (
	maxMessage  = 64 << 10 // bytes of a progress or log emit
	maxLastWord = 4 << 10  // bytes of a result that is taken whatever limits.output says
	i32         = api.ValueTypeI32
)

// A hostFunction is one import of module "skill" (docs/abi.md). do gets the
// parameters, which are 32 bits each, and returns the result.
type hostFunction struct {
	name            string
	params, results []api.ValueType
	do              func(c *call, mem api.Memory, p []uint64) int32
}

var hostFunctions = []hostFunction{
	{"start", []api.ValueType{i32, i32}, []api.ValueType{i32}, func(c *call, m api.Memory, p []uint64) int32 {
		request, ok := copyIn(m, p[0], p[1])
		if !ok {
			return sdk.ErrFault
		}
		return c.handles.start(request)
	}},
	{"wait", []api.ValueType{i32, i32, i32}, []api.ValueType{i32}, hostWait},
	{"take", []api.ValueType{i32, i32, i32, i32}, []api.ValueType{i32}, hostTake},
	{"drop", []api.ValueType{i32}, []api.ValueType{i32}, func(c *call, _ api.Memory, p []uint64) int32 {
		return c.handles.drop(uint32(p[0]))
	}},
	{"emit", []api.ValueType{i32, i32, i32}, []api.ValueType{i32}, hostEmit},
	{"cancelled", nil, []api.ValueType{i32}, func(c *call, _ api.Memory, _ []uint64) int32 {
		if c.job.Soft.Err() != nil {
			return 1
		}
		return 0
	}},
}

// fn is f as wazero calls it. No import outlives the hard deadline, and none
// keeps a slice of the guest's memory.
func (f hostFunction) fn() api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		c := callOf(ctx)
		c.check()
		result := f.do(c, mod.Memory(), stack)
		if len(f.results) > 0 {
			stack[0] = api.EncodeI32(result)
		}
	}
}

// copyIn copies n bytes at p out of the guest's memory.
func copyIn(m api.Memory, p, n uint64) ([]byte, bool) {
	b, ok := m.Read(uint32(p), uint32(n))
	if !ok {
		return nil, false
	}
	return slices.Clone(b), true
}

// hostWait is wait(handles, n, ms).
func hostWait(c *call, m api.Memory, p []uint64) int32 {
	n := uint32(p[1])
	if n == 0 || n > maxOpen {
		return sdk.ErrInval
	}
	var list [maxOpen]uint32
	for i := range n {
		at := uint64(uint32(p[0])) + 4*uint64(i)
		h, ok := uint32(0), at <= 1<<32-4
		if ok {
			h, ok = m.ReadUint32Le(uint32(at))
		}
		if !ok {
			return sdk.ErrFault
		}
		list[i] = h
	}
	timeout := time.Duration(-1)
	if ms := int32(p[2]); ms >= 0 {
		timeout = time.Duration(ms) * time.Millisecond
	}
	result := c.handles.wait(c.ctx, list[:n], timeout)
	c.check() // the hard deadline may have ended the wait
	return result
}

// hostTake is take(handle, off, buf, cap).
func hostTake(c *call, m api.Memory, p []uint64) int32 {
	frame, errno := c.handles.frame(uint32(p[0]))
	off, buf, size := uint64(uint32(p[1])), uint32(p[2]), uint32(p[3])
	switch {
	case errno != 0:
		return errno
	case off > uint64(len(frame)):
		return sdk.ErrInval
	}
	rest := frame[off:]
	if size > 0 {
		dst, ok := m.Read(buf, size)
		if !ok {
			return sdk.ErrFault
		}
		copy(dst, rest)
	}
	return int32(len(rest))
}

// hostEmit is emit(kind, ptr, len).
func hostEmit(c *call, m api.Memory, p []uint64) int32 {
	kind, n := int32(p[0]), uint32(p[2])
	message := kind == sdk.EmitProgress || kind == sdk.EmitLog
	switch {
	case kind < sdk.EmitResult || kind > sdk.EmitLog:
		return sdk.ErrInval
	case kind == sdk.EmitResult && c.answer.given:
		return sdk.ErrInval
	case message && n > maxMessage:
		return sdk.ErrOverflow
	}
	if _, ok := m.Read(uint32(p[1]), n); !ok {
		return sdk.ErrFault
	}
	// A small result always fits, so that a guest can say why there is none.
	if c.output.bytes+int64(n) > c.job.Limits.Output && !(kind == sdk.EmitResult && n <= maxLastWord) {
		c.output.full = true
		return sdk.ErrOverflow
	}
	c.output.bytes += int64(n)
	b, _ := copyIn(m, p[1], p[2])
	if kind == sdk.EmitResult {
		return c.reply(b)
	}
	event, ok := executor.ParseEvent(kind, b)
	switch {
	case !ok:
		return sdk.ErrInval
	case !c.count():
		return sdk.ErrOverflow
	}
	c.job.Emit(event)
	return 0
}
