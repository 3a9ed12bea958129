package web

import (
	"container/list"
	"sync"
	"time"
)

// The bounds of the cache.
const (
	cacheTime  = 15 * time.Minute
	cacheBytes = 32 << 20
	cacheItems = 64
)

// A cache keeps documents for a while. It is as safe as the process that it is
// in: of one scope, under one set of rules.
type cache struct {
	now func() time.Time

	mu    sync.Mutex
	bytes int
	order *list.List // of *entry, the one used last in front
	items map[string]*list.Element
}

type entry struct {
	key string
	doc *document
	at  time.Time
}

func newCache() *cache {
	return &cache{now: time.Now, order: list.New(), items: map[string]*list.Element{}}
}

// get returns the document with a key, which nobody may change.
func (c *cache) get(key string) (*document, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[key]
	if !ok {
		return nil, false
	}
	if c.now().Sub(e.Value.(*entry).at) > cacheTime {
		c.drop(e)
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry).doc, true
}

// put keeps d, if it is not too large.
func (c *cache) put(key string, d *document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.items[key]; ok {
		c.drop(old)
	}
	if d.size() > cacheBytes {
		return
	}
	c.items[key] = c.order.PushFront(&entry{key, d, c.now()})
	c.bytes += d.size()
	for c.bytes > cacheBytes || c.order.Len() > cacheItems {
		c.drop(c.order.Back())
	}
}

// drop forgets e. Its caller holds mu.
func (c *cache) drop(e *list.Element) {
	c.order.Remove(e)
	delete(c.items, e.Value.(*entry).key)
	c.bytes -= e.Value.(*entry).doc.size()
}
