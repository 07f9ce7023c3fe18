"""Machine code for this processor, generated and measured."""
