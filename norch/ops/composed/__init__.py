"""Operations that are composed of others: they have no kernel and no derivative of their own."""
